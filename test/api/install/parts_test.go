package install

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// TestManagersOfTheCharts do in one cluster, one after the other, what needs the flags and the rights that the charts give.
func TestManagersOfTheCharts(t *testing.T) {
	s := newStage(t)
	for _, part := range []struct {
		name string
		run  func(*stage)
	}{
		{"Rollouts", (*stage).managesRollouts},
		{"an upgrade", (*stage).keepsWhatManagersWrite},
		{"ResourceDistributions", (*stage).distributes},
		{"priority levels", (*stage).queues},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.run(&stage{s.On(t)}) }) {
			break // the next one goes on with what this one has installed
		}
	}
}

// distributes turns on what copies objects to namespaces: each kind that may be copied is copied, follows, and goes.
func (s *stage) distributes() {
	s.Helper()
	_, err := s.helm("upgrade", "--set", "resourceDistribution.enabled=true,resourceDistribution.moreKinds=true")
	s.Must(err)
	s.manage("distributor")
	for _, namespace := range []string{"from", "to"} {
		s.Must(s.Client.Create(s.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}
	for kind, resource := range map[string]string{
		"Secret":         `{apiVersion: v1, kind: Secret, metadata: {name: copied, labels: {round: "1"}}, stringData: {k: v}}`,
		"ConfigMap":      `{apiVersion: v1, kind: ConfigMap, metadata: {name: copied, labels: {round: "1"}}, data: {k: v}}`,
		"ServiceAccount": `{apiVersion: v1, kind: ServiceAccount, metadata: {name: copied, labels: {round: "1"}}}`,
		"LimitRange":     `{apiVersion: v1, kind: LimitRange, metadata: {name: copied, labels: {round: "1"}}, spec: {limits: [{type: Pod, max: {cpu: "1"}}]}}`,
		"NetworkPolicy": `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: copied, labels: {round: "1"}},
spec: {podSelector: {}, ingress: [{}]}}`,
	} {
		name := strings.ToLower(kind)
		s.apply(fmt.Sprintf(`{apiVersion: apps.kruise.io/v1beta1, kind: ResourceDistribution, metadata: {name: %s},
spec: {resource: %s, targets: {includedNamespaces: {list: [{name: from}]}}}}`, name, resource))
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(map[bool]string{true: "networking.k8s.io/v1", false: "v1"}[kind == "NetworkPolicy"])
		o.SetKind(kind)
		s.Eventually("it is copied", func() error { return s.isCopied(o, "from", "1") })
		s.edit(name, `{"spec": {"resource": {"metadata": {"labels": {"round": "2"}}}}}`)
		s.Eventually("the copy follows", func() error { return s.isCopied(o, "from", "2") })
		s.edit(name, `{"spec": {"targets": {"includedNamespaces": {"list": [{"name": "to"}]}}}}`)
		s.Eventually("it is copied elsewhere", func() error { return s.isCopied(o, "to", "2") })
		s.Eventually("the first copy goes", func() error {
			if err := s.isCopied(o, "from", "2"); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s: %v", kind, err) //nolint:errorlint // there may be no error
			}
			return nil
		})
	}
}

func (s *stage) isCopied(o *unstructured.Unstructured, namespace, round string) error {
	err := s.Client.Get(s.Ctx, client.ObjectKey{Namespace: namespace, Name: "copied"}, o)
	if err == nil && o.GetLabels()["round"] != round {
		return fmt.Errorf("%s has the labels %v", o.GetKind(), o.GetLabels())
	}
	return err
}

// edit changes a ResourceDistribution.
func (s *stage) edit(name, patch string) {
	s.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("apps.kruise.io/v1beta1")
	o.SetKind("ResourceDistribution")
	o.SetName(name)
	s.Must(s.Client.Patch(s.Ctx, o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// managesRollouts starts the manager of Rollouts with what the chart gives it: it leads, keeps its CA, and asks who wants its metrics.
func (s *stage) managesRollouts() {
	s.Helper()
	const namespace = "kruise-rollout"
	_, err := s.Helm(s.Ctx, "install", namespace, "charts/kruise-rollout", "--namespace", namespace, "--create-namespace")
	s.Must(err)
	start := func(name string, more ...string) *cluster.Manager {
		o := cluster.ManagerOptions{Program: cluster.RolloutManager(), Args: append(s.flags("kruise-rollout-manager", namespace), more...)}
		return s.start(name, namespace, "kruise-rollout-webhook-service", o)
	}
	first := start("rollouts")
	certs := client.ObjectKey{Namespace: namespace, Name: "kruise-rollout-webhook-certs"}
	s.Must(s.Client.Get(s.Ctx, certs, &corev1.Secret{}))
	s.Eventually("it leads", func() error {
		holder, err := s.Kubectl(s.Ctx, "-n", namespace, "get", "lease", "kruise-rollout", "-o", "jsonpath={.spec.holderIdentity}")
		if err == nil && holder == "" {
			err = errors.New("nobody leads")
		}
		return err
	})
	first.Stop()

	s.Log("a CA that is lost is made anew, in the Secret that there is")
	s.Must(s.Client.Patch(s.Ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: certs.Namespace, Name: certs.Name}},
		client.RawPatch(types.MergePatchType, []byte(`{"data": null}`))))
	port := first.MetricsAddress()[strings.LastIndex(first.MetricsAddress(), ":"):]
	start("rollouts-again", "--metrics-bind-address=0.0.0.0"+port)
	var secret corev1.Secret
	s.Must(s.Client.Get(s.Ctx, certs, &secret))
	if len(secret.Data) == 0 {
		s.Error("the Secret of the CA is empty")
	}
	path := filepath.Join(s.Dir, "reader")
	s.Must(s.AccountKubeconfig(s.Ctx, types.NamespacedName{Namespace: namespace, Name: "kruise-rollout"}, path))
	config, err := clientcmd.BuildConfigFromFlags("", path)
	s.Must(err)
	for token, want := range map[string]int{"made up": http.StatusUnauthorized, config.BearerToken: http.StatusForbidden} {
		if got := s.ask("https://127.0.0.1"+port+"/metrics", token); got != want {
			s.Errorf("who asks with %.10q for metrics is answered by %d, want %d", token, got, want)
		}
	}
}

// ask returns the status of an answer. A manager may be ready a moment before it serves its metrics, with a certificate made for that.
func (s *stage) ask(url, token string) int {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Ctx, http.MethodGet, url, http.NoBody)
	s.Must(err)
	request.Header.Set("Authorization", "Bearer "+token)
	c := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // not what is tested
	}}
	status := 0
	s.Eventually(url+" answers", func() error {
		answer, err := c.Do(request)
		if err != nil {
			return err
		}
		status = answer.StatusCode
		return answer.Body.Close()
	})
	return status
}
