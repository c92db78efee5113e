// Package install applies what users install by, which is charts, kustomizations and the file of a release, to a real API server. What runs
// of it then is the affair of test/nodes/install.
package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// everything turns on all that the chart has.
const everything = "resourceDistribution.enabled=true,resourceDistribution.moreKinds=true,multicluster.enabled=true," +
	"metrics.serviceMonitor.enabled=true,daemon.credentialProvider.enable=true,daemon.socketLocation=/run/k3s/containerd," +
	"manager.hostNetwork=true,manager.webhook.port=9443,manager.log.level=4,webhookConfiguration.aksIntegration=true," +
	"webhookConfiguration.timeoutSeconds=30,networkPolicy.apiServers={192.0.2.0/24},imagePullSecrets[0].name=registry," +
	"serviceAccount.annotations.team=platform,externalCerts.annotations.team=platform,manager.replicas=3"

// serviceMonitors is the kind that ServiceMonitors are of, which another project installs.
const serviceMonitors = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
"metadata": {"name": "servicemonitors.monitoring.coreos.com"}, "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced",
"names": {"plural": "servicemonitors", "singular": "servicemonitor", "kind": "ServiceMonitor", "listKind": "ServiceMonitorList"},
"versions": [{"name": "v1", "served": true, "storage": true,
"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`

// stage is an API server of one test's own.
type stage struct{ *scene.Stage }

// release is what Helm installs in a test.
type release struct{ chart, namespace, values string }

// TestAnAPIServerTakesTheCharts, both in one cluster, with values of many kinds: it installs them, and upgrades them to the default ones and
// back. The other tests here install the charts with no values, in the namespace of the managers.
func TestAnAPIServerTakesTheCharts(t *testing.T) {
	for name, releases := range map[string][]release{
		"with all that there is": {
			{"kruise", "default", everything},
			{"kruise-rollout", "default", "replicaCount=1,rollout.featureGates=RolloutHistory=true"},
		},
		"without parts": {
			{"kruise", "kruise-system", "daemon.enabled=false,protection.enabled=false,networkPolicy.enabled=false,uninstall.guard=false"},
			{"kruise-rollout", "kruise-rollout", "replicaCount=3,rollout.webhook.port=9443," +
				"rollout.webhook.objectSelector[0].key=team,rollout.webhook.objectSelector[0].operator=Exists"},
		},
		"in another namespace": {
			{"kruise", "default", "installation.namespace=elsewhere"},
			{"kruise-rollout", "default", "installation.namespace=elsewhere-too"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.apply(serviceMonitors)
			for _, r := range releases {
				s.takes(r)
			}
		})
	}
}

// takes installs a release and upgrades it.
func (s *stage) takes(r release) {
	s.Helper()
	of := []string{r.chart, "charts/" + r.chart, "--namespace", r.namespace, "--create-namespace"}
	_, err := s.Helm(s.Ctx, append([]string{"install", "--set", r.values}, of...)...)
	s.Must(err)
	if !strings.Contains(r.values, "installation.namespace") { // nobody moves an installation
		_, err = s.Helm(s.Ctx, append([]string{"upgrade", "--reset-values"}, of...)...)
		s.Must(err)
	}
	_, err = s.Helm(s.Ctx, append([]string{"upgrade", "--set", r.values}, of...)...)
	s.Must(err)
	s.releaseFits(r.namespace)
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return &stage{scene.NewStage(t, cluster.Options{Bare: true})}
}

// root is the folder of the repository.
func (s *stage) root() string {
	s.Helper()
	root, err := cluster.Root()
	s.Must(err)
	return root
}

// apply applies a manifest.
func (s *stage) apply(text string) {
	s.Helper()
	path := filepath.Join(s.Dir, "manifest.json")
	s.Must(os.WriteFile(path, []byte(text), 0o600))
	s.Must(s.ApplyFile(s.Ctx, path))
}

// releaseFits checks that the Secret in which Helm keeps a release, of which the API server takes 1 MiB, has room to grow.
func (s *stage) releaseFits(namespace string) {
	s.Helper()
	var all corev1.SecretList
	s.Must(s.Client.List(s.Ctx, &all, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm"}))
	if len(all.Items) == 0 {
		s.Fatal("Helm has stored no release")
	}
	for i := range all.Items {
		if size := len(all.Items[i].Data["release"]); size > 700<<10 {
			s.Errorf("release %s takes %d KiB", all.Items[i].Name, size>>10)
		}
	}
}

// TestAnAPIServerTakesTheFilesOfARelease, twice, as with an upgrade, and the folders that they are made of.
func TestAnAPIServerTakesTheFilesOfARelease(t *testing.T) {
	s := newStage(t)
	root := s.root()
	cmd := exec.CommandContext(s.Ctx, "go", "run", ".", "release", "-version", "v9.9.9", "-registry", "registry.example.com/kruise", "-out", s.Dir)
	cmd.Dir = filepath.Join(root, "tools", "chart")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for range 2 {
		for _, file := range []string{"install.yaml", "install-rollouts.yaml"} {
			_, err := s.Kubectl(s.Ctx, "apply", "--server-side", "-f", filepath.Join(s.Dir, file))
			s.Must(err)
		}
	}
	for what, want := range map[string]string{
		"deployment/kruise-controller-manager -n kruise-system": "registry.example.com/kruise/kruise-manager:v9.9.9",
		"daemonset/kruise-daemon -n kruise-system":              "registry.example.com/kruise/kruise-daemon:v9.9.9",
		"deployment/kruise-rollout-manager -n kruise-rollout":   "registry.example.com/kruise/kruise-rollout:v9.9.9",
	} {
		args := append([]string{"get", "-o", "jsonpath={.spec.template.spec.containers[0].image}"}, strings.Fields(what)...)
		if got, err := s.Kubectl(s.Ctx, args...); err != nil || got != want {
			t.Errorf("%s has the image %q, want %s: %v", what, got, want, err)
		}
	}
	for _, folder := range []string{"default", "rollouts", "multicluster"} {
		_, err := s.Kubectl(s.Ctx, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(root, "config", folder))
		s.Must(err)
	}
}
