package install

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// queues asks the API server, as managers, daemons and others do, and sees to which priority level it gives their requests. Both charts are
// installed. Then the chart is told to leave the levels out.
func (s *stage) queues() {
	s.Helper()
	const leases = "/apis/coordination.k8s.io/v1/namespaces/%s/leases/kruise-manager"
	manager, daemon := account{"kruise-system", "kruise-manager"}, account{"kruise-system", "kruise-daemon"}
	releases, other := account{"kruise-rollout", "kruise-rollout"}, account{"kruise-system", "somebody"}
	s.apply(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: somebody, namespace: kruise-system}}`)
	for _, tc := range []struct {
		by         account
		path, want string
	}{
		{manager, "/api/v1/namespaces/default/pods", "kruise-manager at kruise-manager"},
		{manager, "/api/v1/nodes", "kruise-manager at kruise-manager"},
		{manager, "/version", "kruise-manager at kruise-manager"},
		{manager, fmt.Sprintf(leases, "kruise-system"), "kruise-leader-election at leader-election"},
		{manager, fmt.Sprintf(leases, "default"), "kruise-manager at kruise-manager"},
		{daemon, "/apis/apps.kruise.io/v1beta1/nodeimages", "kruise-daemon at kruise-daemon"},
		{releases, "/apis/apps/v1/namespaces/default/deployments", "kruise-rollout at kruise-rollout"},
		{releases, fmt.Sprintf(leases, "kruise-rollout"), "kruise-rollout-leader-election at leader-election"},
		{other, "/api/v1/namespaces/default/pods", "service-accounts at workload-low"},
		{other, fmt.Sprintf(leases, "kruise-system"), "service-accounts at workload-low"},
	} {
		s.Eventually(fmt.Sprintf("%s of %s is of %s", tc.path, tc.by.name, tc.want), func() error {
			if got := s.levelOf(tc.by, tc.path); got != tc.want {
				return fmt.Errorf("it is of %s", got)
			}
			return nil
		})
	}
	for _, schema := range s.ownSchemas() {
		for _, c := range schema.Status.Conditions {
			if c.Type == flowcontrolv1.FlowSchemaConditionDangling && c.Status != flowcontrolv1.ConditionFalse {
				s.Errorf("%s is dangling: %s", schema.Name, c.Message)
			}
		}
	}
	_, err := s.helm("upgrade", "--set", "flowControl.enabled=false")
	s.Must(err)
	_, err = s.Helm(s.Ctx, "upgrade", "kruise-rollout", "charts/kruise-rollout", "--namespace", "kruise-rollout", "--set", "flowControl.enabled=false")
	s.Must(err)
	if left := s.ownSchemas(); len(left) > 0 {
		s.Errorf("without flowControl.enabled there are %d FlowSchemas of Kruise", len(left))
	}
	for _, by := range []account{manager, releases} {
		s.Eventually("requests of "+by.name+" are those of any service account", func() error {
			if got := s.levelOf(by, "/api/v1/namespaces/default/pods"); got != "service-accounts at workload-low" {
				return fmt.Errorf("they are of %s", got)
			}
			return nil
		})
	}
}

type account struct{ namespace, name string }

// levelOf returns the FlowSchema that takes a request of an account, and its priority level. Whether the account may see the answer is
// decided later.
func (s *stage) levelOf(by account, path string) string {
	s.Helper()
	file := filepath.Join(s.Dir, "flows-"+by.name)
	s.Must(s.AccountKubeconfig(s.Ctx, types.NamespacedName{Namespace: by.namespace, Name: by.name}, file))
	config, err := clientcmd.BuildConfigFromFlags("", file)
	s.Must(err)
	c, err := rest.HTTPClientFor(config)
	s.Must(err)
	request, err := http.NewRequestWithContext(s.Ctx, http.MethodGet, config.Host+path, http.NoBody)
	s.Must(err)
	answer, err := c.Do(request)
	s.Must(err)
	s.Must(answer.Body.Close())
	var schemas flowcontrolv1.FlowSchemaList
	s.Must(s.Client.List(s.Ctx, &schemas))
	for i := range schemas.Items {
		if schema := &schemas.Items[i]; string(schema.UID) == answer.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID) {
			return schema.Name + " at " + schema.Spec.PriorityLevelConfiguration.Name
		}
	}
	return "no FlowSchema that is there"
}

// ownSchemas returns the FlowSchemas of Kruise.
func (s *stage) ownSchemas() []flowcontrolv1.FlowSchema {
	s.Helper()
	var all flowcontrolv1.FlowSchemaList
	s.Must(s.Client.List(s.Ctx, &all))
	var own []flowcontrolv1.FlowSchema
	for _, schema := range all.Items {
		if strings.HasPrefix(schema.Name, "kruise-") {
			own = append(own, schema)
		}
	}
	return own
}
