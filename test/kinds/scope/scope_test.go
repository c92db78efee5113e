package scope

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	shipped "github.com/seed-69ecc383/kruise/config/webhook"
)

func tests() map[string]func(*env) {
	return map[string]func(*env){
		"without SidecarSets no ordinary Pod reaches the manager":          ordinaryPods,
		"without a manager only Pods that use Kruise are refused":          withoutManager,
		"a SidecarSet that is gone is no reason to refuse Pods":            afterDeletion,
		"a Pod right after its SidecarSet gets its sidecar":                rightAfter,
		"labels of namespaces count while there is no manager":             labelsOfNamespaces,
		"applying the manifest again takes nothing back":                   appliedAgain,
		"a configuration that is replaced is repaired at once":             replaced,
		"at rest nothing is written, and a dry run changes nothing either": atRest,
	}
}

func ordinaryPods(e *env) {
	e.calm()
	before := e.asked()
	for range 5 {
		e.passes("default", "{app: web}")
	}
	if got := e.asked() - before; got != 0 {
		e.Errorf("the manager was asked about %d of 5 ordinary Pods", got)
	}
	p, err := e.pod("default", "{app: web}", keys.ContainerLaunchPriority)
	e.Must(err)
	if got := e.asked() - before; got != 1 || p.Spec.Containers[0].Env[0].Name != keys.ContainerBarrierEnv {
		e.Errorf("the manager was asked %d times about a Pod that asks for a launch order, which became %+v", got, p.Spec.Containers)
	}
}

func withoutManager(e *env) {
	e.sidecarSet("everywhere", "{selector: {matchLabels: {app: web}}}")
	e.sidecarSet("in-shop", "{selector: {matchExpressions: [{key: tier, operator: Exists}]}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}")
	before := e.asked()
	if p, err := e.pod("default", "{app: web}"); err != nil || len(p.Spec.Containers) != 3 {
		e.Errorf("with a manager, a Pod that is selected became %+v: %v", p.Spec.Containers, err)
	}
	if got := e.asked() - before; got != 1 {
		e.Errorf("the manager was asked %d times about one Pod", got)
	}
	e.kill()
	e.passes("default", "{}")
	e.passes("default", "{app: db, tier: front}")
	e.passes("shop", "{app: db}")
	e.refused("default", "{app: web}")
	e.refused("shop", "{app: web}")
	e.refused("shop", `{tier: ""}`)
	e.refused("default", "{}", keys.ContainerLaunchPriority)
}

func afterDeletion(e *env) {
	set := e.sidecarSet("gone", "{selector: {matchLabels: {app: gone}}}")
	if n := len(e.webhooks()); n != 2 {
		e.Errorf("there are %d webhooks for Pods while there is a SidecarSet", n)
	}
	e.settled()
	e.Must(e.Delete(e.Ctx, set))
	began := time.Now()
	e.calm()
	e.Logf("the configuration was narrowed after %s", time.Since(began))
	e.kill()
	e.passes("default", "{app: gone}")
}

// rightAfter does as kubectl apply does with a file of two objects, again and again.
func rightAfter(e *env) {
	for i := range 10 {
		name := fmt.Sprintf("after-%d", i)
		e.sidecarSet(name, "{selector: {matchLabels: {app: "+name+"}}}")
		p, err := e.pod("default", "{app: "+name+"}")
		if err != nil || len(p.Spec.Containers) != 3 {
			e.Errorf("Pod %d became %+v: %v", i, p.Spec.Containers, err)
		}
	}
	file := filepath.Join(e.TempDir(), "both.yaml")
	e.Must(os.WriteFile(file, []byte(`
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: of-a-file}
spec:
  selector: {matchLabels: {app: of-a-file}}
  containers: [{name: agent, image: agent}]
---
apiVersion: v1
kind: Pod
metadata: {name: of-a-file, namespace: default, labels: {app: of-a-file}}
spec: {containers: [{name: main, image: nginx}]}
`), 0o600))
	_, err := e.Kubectl(e.Ctx, "apply", "-f", file)
	e.Must(err)
	p := &corev1.Pod{}
	e.Must(e.Get(e.Ctx, client.ObjectKey{Namespace: "default", Name: "of-a-file"}, p))
	if len(p.Spec.Containers) != 2 {
		e.Errorf("the Pod of the file has %d containers", len(p.Spec.Containers))
	}
	e.settled()
	of := &v1beta1.SidecarSet{}
	of.Name = p.Name
	e.Must(e.Delete(e.Ctx, of))
}

func labelsOfNamespaces(e *env) {
	e.sidecarSet("of-a-team", "{selector: {matchLabels: {app: web}}, namespaceSelector: {matchLabels: {team: x}}}")
	if p, err := e.pod("team-x", "{app: web}"); err != nil || len(p.Spec.Containers) != 3 {
		e.Errorf("with a manager, a Pod of the team became %+v: %v", p.Spec.Containers, err)
	}
	e.kill()
	e.refused("team-x", "{app: web}")
	e.passes("team-x", "{app: db}")
	e.passes("default", "{app: web}")
	e.passes("shop", "{app: web}")
}

// manifest returns the shipped configuration for a manager that is reached as this one is: by URL.
func (e *env) manifest() string {
	e.Helper()
	address := ""
	for _, w := range e.configuration().Webhooks {
		if at := w.ClientConfig.URL; at != nil {
			address = (*at)[:strings.LastIndex(*at, "/")]
		}
	}
	if address == "" {
		e.Fatal("the webhooks are not reached by URL")
	}
	first, _, _ := strings.Cut(string(shipped.Manifests), "\n---\n")
	text := regexp.MustCompile(`service: \{.*path: (\S+)\}`).ReplaceAllString(first, "url: "+address+"$1")
	file := filepath.Join(e.TempDir(), "manifest.yaml")
	e.Must(os.WriteFile(file, []byte(text), 0o600))
	return file
}

func appliedAgain(e *env) {
	e.sidecarSet("kept", "{selector: {matchLabels: {app: kept}}}")
	file := e.manifest()
	before := e.webhooks()
	e.kill() // so that nobody repairs what it does
	for _, how := range [][]string{{"apply"}, {"apply", "--server-side", "--force-conflicts"}} {
		out, err := e.Kubectl(e.Ctx, append(how, "-f", file)...)
		e.Must(err)
		if got := e.webhooks(); !slices.Equal(got, before) {
			e.Errorf("after kubectl %v (%s) the webhooks for Pods are %v, and were %v", how, strings.TrimSpace(out), got, before)
		}
	}
	e.refused("default", "{app: kept}")
	e.passes("default", "{app: web}")
}

func replaced(e *env) {
	e.sidecarSet("repaired", "{selector: {matchLabels: {app: repaired}}}")
	file := e.manifest()
	_, err := e.Kubectl(e.Ctx, "replace", "-f", file)
	e.Must(err)
	began := time.Now()
	e.Eventually("Pods are sent again", func() error {
		p, err := e.pod("default", "{app: repaired}")
		if err != nil {
			return err
		}
		if len(p.Spec.Containers) != 3 {
			return errors.New("it got no sidecar")
		}
		return nil
	})
	e.Logf("the configuration was repaired after %s", time.Since(began))
}

func atRest(e *env) {
	e.sidecarSet("resting", "{selector: {matchLabels: {app: resting}}}")
	e.settled()
	before := e.configuration()
	dry := &v1beta1.SidecarSet{}
	e.Must(yaml.UnmarshalStrict([]byte("{metadata: {name: dry}, spec: {selector: {matchLabels: {app: dry}}, containers: [{name: dry, image: agent}]}}"), dry))
	e.Must(e.Create(e.Ctx, dry, client.DryRunAll))
	e.Must(retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the controller writes the status
		set := &v1beta1.SidecarSet{}
		e.Must(e.Get(e.Ctx, client.ObjectKey{Name: "resting"}, set))
		set.Spec.Containers[0].Image = "agent:2"
		return e.Update(e.Ctx, set)
	}))
	time.Sleep(5 * time.Second)
	if after := e.configuration(); after.ResourceVersion != before.ResourceVersion {
		e.Errorf("the configuration was written: it was\n%+v\nand is\n%+v", before, after)
	}
}
