package operation

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// TestMetricsAskForAToken where other machines reach them.
func TestMetricsAskForAToken(t *testing.T) {
	s := newSite(t, cluster.Options{Bare: true})
	s.Must(s.Install(s.Ctx))
	m := s.Launch("open", cluster.ManagerOptions{})
	port := m.MetricsAddress()[strings.LastIndex(m.MetricsAddress(), ":"):]
	s.Must(m.WaitReady(s.Ctx))
	m.Stop()
	m = s.Launch("first", cluster.ManagerOptions{Args: []string{"--metrics-addr=0.0.0.0" + port}})
	s.Must(m.WaitReady(s.Ctx))
	token := func(account string) string {
		a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: "default"}}
		s.Must(s.Client.Create(s.Ctx, a))
		request := &authenticationv1.TokenRequest{}
		s.Must(s.Client.SubResource("token").Create(s.Ctx, a, request))
		return request.Status.Token
	}
	prometheus, tenant := token("prometheus"), token("tenant")
	reader := metav1.ObjectMeta{Name: "kruise-metrics-reader"}
	s.Must(s.Client.Create(s.Ctx, &rbacv1.ClusterRole{
		ObjectMeta: reader, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}))
	s.Must(s.Client.Create(s.Ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: reader, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "prometheus", Namespace: "default"}},
	}))
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // not what is tested
	}}
	for bearer, want := range map[string]int{
		"": http.StatusUnauthorized, "made up": http.StatusUnauthorized, tenant: http.StatusForbidden, prometheus: http.StatusOK,
	} {
		s.Eventually(fmt.Sprintf("a reader with token %.10q is answered by %d", bearer, want), func() error { // rights take a moment
			request, err := http.NewRequestWithContext(s.Ctx, http.MethodGet, "https://127.0.0.1"+port+"/metrics", http.NoBody)
			s.Must(err)
			request.Header.Set("Authorization", "Bearer "+bearer)
			answer, err := client.Do(request)
			s.Must(err)
			s.Must(answer.Body.Close())
			if answer.StatusCode != want {
				return fmt.Errorf("the answer is %d", answer.StatusCode)
			}
			return nil
		})
	}
}
