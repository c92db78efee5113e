package protection

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func TestDeletionOfANamespaceThatIsAlwaysProtected(t *testing.T) {
	g := newGuard(t)
	n := g.namespace("Always")
	g.keeps(n, always, "to delete Namespace "+n.Name+" all the same, remove this label from it")
	g.unprotect(n)
	g.goes(n)
}

func TestDeletionOfANamespaceWithPods(t *testing.T) {
	g := newGuard(t)
	n := g.namespace("Cascading")
	p := g.pod(n.Name)
	g.keeps(n, cascading+"active pods 1>0", "remove the label")
	g.Eventually("the Pod is over", func() error { // a controller or kubelet may write its status meanwhile
		if err := g.Client.Get(g.Ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		p.Status.Phase = corev1.PodSucceeded
		return g.Client.Status().Update(g.Ctx, p)
	})
	g.goes(n)
}

func TestDeletionOfANamespaceWithClaims(t *testing.T) {
	g := newGuard(t)
	n := g.namespace("Cascading")
	c, v := g.claim(n.Name)
	g.keeps(n, cascading+`"Bound" status pvc 1>0`)
	for _, o := range []client.Object{c, v} {
		g.protect(o, "Cascading")
		g.keeps(o, cascading+`status "Bound"`)
		g.unprotect(o)
	}
	g.Must(g.Client.Delete(g.Ctx, c))
	g.goes(n)
	g.Must(g.Client.Delete(g.Ctx, v))
}

// TestDeletionOfANamespaceWithProtectedObjects: the label of the namespace does not matter.
func TestDeletionOfANamespaceWithProtectedObjects(t *testing.T) {
	g := newGuard(t)
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.NewNamespace(nil)}}
	in := g.In(n.Name)
	settings := in.Make("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {" + deletionLabel + ": Always}}}")
	in.Make("{apiVersion: v1, kind: Service, metadata: {name: free, labels: {" + deletionLabel + ": Cascading}}, spec: {ports: [{port: 80}]}}")
	// A manager that does not answer in time keeps no namespace, as on a machine that is busy.
	g.Eventually("the namespace is kept", func() error {
		return refusedWith(g.Client.Delete(g.Ctx, n, client.DryRunAll), forbidden+"protected objects in the namespace: ConfigMap settings;")
	})
	g.unprotect(settings)
	g.goes(n)
}

// workloads are manifests of what has replicas, by the API version that it is written in.
func workloads() map[string]string {
	const body = `{replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: "nginx:1"}]}}}`
	out := map[string]string{}
	for _, kind := range []string{
		"apps/v1 Deployment", "apps/v1 ReplicaSet", "apps/v1 StatefulSet", "apps.kruise.io/v1beta1 CloneSet", "apps.kruise.io/v1alpha1 CloneSet",
		"apps.kruise.io/v1beta1 StatefulSet", "apps.kruise.io/v1alpha1 StatefulSet",
	} {
		version, kind, _ := strings.Cut(kind, " ")
		out[version+" "+kind] = fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: web, labels: {%s: Cascading}}, spec: %s}",
			version, kind, deletionLabel, body)
	}
	for _, version := range []string{"apps.kruise.io/v1beta1", "apps.kruise.io/v1alpha1"} {
		out[version+" UnitedDeployment"] = fmt.Sprintf(`{apiVersion: %s, kind: UnitedDeployment, metadata: {name: web, labels: {%s: Cascading}}, spec: {
			replicas: 2, selector: {matchLabels: {app: web}}, topology: {subsets: [{name: a}]},
			template: {deploymentTemplate: {metadata: {labels: {app: web}}, spec: %s}}}}`, version, deletionLabel, body)
	}
	return out
}

// TestDeletionOfWorkloads that have replicas, in each version, until they are scaled to 0.
func TestDeletionOfWorkloads(t *testing.T) {
	for name, text := range workloads() {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t)
			o := g.Make(text)
			g.keeps(o, cascading+"replicas 2>0", "to delete "+o.GetKind()+" web all the same, remove this label from it")
			g.Must(g.Client.Patch(g.Ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":0}}`))))
			g.Must(g.Client.Delete(g.Ctx, o))
		})
	}
}

func TestDeletionOfServicesAndIngresses(t *testing.T) {
	g := newGuard(t)
	for _, o := range []*unstructured.Unstructured{
		g.Make("{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}"),
		g.Make(`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}, spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}}`),
	} {
		g.protect(o, "Always")
		g.keeps(o, always)
		g.protect(o, "Cascading")
		g.Must(g.Client.Delete(g.Ctx, o))
	}
}

// TestDeletionOfMany: each object is judged by itself, by kubectl and as a collection.
func TestDeletionOfMany(t *testing.T) {
	g := newGuard(t)
	make5 := func() {
		for i := range 5 {
			label := ""
			if i < 3 {
				label = deletionLabel + ": Always"
			}
			g.Make(fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web-%d, labels: {%s}},
spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: "nginx:1"}]}}}}`, i, label))
		}
	}
	left := func() (names []string) {
		var list appsv1.DeploymentList
		g.Must(g.Client.List(g.Ctx, &list, client.InNamespace(g.Namespace)))
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names
	}
	make5()
	_, err := g.Kubectl(g.Ctx, "-n", g.Namespace, "delete", "deploy", "--all", "--wait=false")
	if n := strings.Count(fmt.Sprint(err), always); n != 3 {
		t.Errorf("%d refusals, want 3: %v", n, err)
	}
	if diff := cmp.Diff([]string{"web-0", "web-1", "web-2"}, left()); diff != "" {
		t.Errorf("after kubectl (-want +got):\n%s", diff)
	}
	for i := range 3 {
		g.unprotect(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: fmt.Sprintf("web-%d", i)}})
	}
	g.Must(g.Client.DeleteAllOf(g.Ctx, &appsv1.Deployment{}, client.InNamespace(g.Namespace)))
	make5()
	if err := refusedWith(g.Client.DeleteAllOf(g.Ctx, &appsv1.Deployment{}, client.InNamespace(g.Namespace)), always); err != nil {
		t.Error(err)
	}
	if names := left(); len(names) < 3 || names[0] != "web-0" || names[1] != "web-1" || names[2] != "web-2" {
		t.Errorf("after a deletion of all, %v are left", names)
	}
}

// TestDeletionOfAnOwner in the foreground: its protected child stays, and with it the owner; a refusal and an event say so.
func TestDeletionOfAnOwner(t *testing.T) {
	g := newGuard(t)
	d := g.Make(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web},
spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web, ` + deletionLabel + `: Always}}, spec: {containers: [{name: app, image: "nginx:1"}]}}}}`)
	var sets appsv1.ReplicaSetList
	g.Eventually("there is a ReplicaSet", func() error {
		g.Must(g.Client.List(g.Ctx, &sets, client.InNamespace(g.Namespace)))
		if len(sets.Items) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	child := &sets.Items[0]
	g.Must(g.Client.Delete(g.Ctx, d, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	g.Eventually("an event on the ReplicaSet names its owner", func() error {
		for _, event := range g.Events(child.Name) {
			if event.Reason == "DeletionBlocked" && strings.Contains(event.Message, always+"; it is owned by Deployment web") {
				return nil
			}
		}
		return fmt.Errorf("the events are %v", g.Reasons(child.Name))
	})
	g.keeps(child, always, "; it is owned by Deployment web")
	g.Must(g.Client.Get(g.Ctx, client.ObjectKeyFromObject(d), d))
	if d.GetDeletionTimestamp() == nil {
		t.Error("the Deployment is not being deleted")
	}
	g.unprotect(child)
	g.Eventually("the Deployment is gone", func() error {
		if err := g.Client.Get(g.Ctx, client.ObjectKeyFromObject(d), d); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

func TestDryRunOfADeletion(t *testing.T) {
	g := newGuard(t)
	n := g.namespace("Cascading")
	g.pod(n.Name)
	settings := g.Make("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {" + deletionLabel + ": Always}}}")
	for o, text := range map[client.Object]string{n: "active pods 1>0", settings: always} {
		if err := refusedWith(g.Client.Delete(g.Ctx, o, client.DryRunAll), text); err != nil {
			t.Error(err)
		}
	}
}

// TestDeletionOfWhatIsBeingDeleted passes: the label may have been written after the first deletion.
func TestDeletionOfWhatIsBeingDeleted(t *testing.T) {
	g := newGuard(t)
	o := g.Make("{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/hold]}}")
	g.Must(g.Client.Delete(g.Ctx, o))
	g.protect(o, "Always")
	g.Must(g.Client.Delete(g.Ctx, o))
	g.Must(g.Client.Patch(g.Ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
}

// TestLabelsThatProtectNothing are told to who writes them.
func TestLabelsThatProtectNothing(t *testing.T) {
	g := newGuard(t)
	heard := &warnings{}
	config := rest.CopyConfig(g.Config)
	config.WarningHandler = heard
	c, err := client.New(config, client.Options{Scheme: g.Client.Scheme()})
	g.Must(err)
	o := g.Manifest("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {" + deletionLabel + ": always}}}")
	g.Eventually("a warning says what values there are", func() error {
		heard.said = nil
		if err := c.Create(g.Ctx, o.DeepCopy(), client.DryRunAll); err != nil || !strings.Contains(strings.Join(heard.said, "\n"),
			deletionLabel+"=always protects nothing: write Always or Cascading") {
			return fmt.Errorf("heard %q (%w)", heard.said, err)
		}
		return nil
	})
	heard.said = nil
	o.SetLabels(map[string]string{deletionLabel: "Cascading"})
	g.Must(c.Create(g.Ctx, o))
	if text := strings.Join(heard.said, "\n"); !strings.Contains(text, deletionLabel+"=Cascading protects nothing of kind ConfigMap: write Always") {
		t.Errorf("heard %q", text)
	}
	heard.said = nil
	for _, data := range []string{`{"data":{"a":"b"}}`, `{"metadata":{"labels":{"` + deletionLabel + `":"Always"}}}`} {
		g.Must(c.Patch(g.Ctx, o, client.RawPatch("application/merge-patch+json", []byte(data))))
	}
	if len(heard.said) > 0 {
		t.Errorf("heard %q of what is as it was, or as it should be", heard.said)
	}
}

// warnings are what the API server warns of.
type warnings struct{ said []string }

func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.said = append(w.said, text) }

// TestDeletionsAreReported in a metric and the protection log, once for each refusal.
func TestDeletionsAreReported(t *testing.T) {
	g := newSerialGuard(t)
	logs := t.TempDir()
	g.Site.Manager.Stop()
	g.Must(g.Site.Relaunch(g.Ctx, "--protection-log-path="+logs))
	defer func() {
		g.Site.Manager.Stop()
		g.Must(g.Site.Relaunch(g.Ctx))
	}()
	n := g.namespace("Cascading")
	g.pod(n.Name)
	web := g.Make(workloads()["apps.kruise.io/v1beta1 CloneSet"])
	service := g.Make("{apiVersion: v1, kind: Service, metadata: {name: web, labels: {" + deletionLabel + ": Always}}, spec: {ports: [{port: 80}]}}")
	// An API server that refuses a deletion by an outdated object of its cache reads it anew and asks once more, so the object has to rest.
	g.Eventually("the CloneSet is complete", func() error {
		set := &v1beta1.CloneSet{}
		g.Must(g.Client.Get(g.Ctx, client.ObjectKeyFromObject(web), set))
		if set.Status.AvailableReplicas != 2 || set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("%d Pods are available", set.Status.AvailableReplicas)
		}
		return nil
	})
	reports := []*report{
		{metric: "namespace_deletion_protection", of: n.Name, line: "Namespace " + n.Name, refuse: func() { g.keeps(n, cascading) }},
		{
			metric: "workload_deletion_protection", of: "CloneSet_" + g.Namespace + "_web", line: "CloneSet web",
			refuse: func() { g.keeps(web, cascading) },
		},
		{
			metric: "service_deletion_protection", of: "Service_" + g.Namespace + "_web", line: "Service web",
			refuse: func() { g.keeps(service, always) },
		},
	}
	for i := range 3 {
		for _, r := range reports {
			g.isReported(r, i+1)
		}
	}
	g.Eventually("the protection log has a line for each report", func() error {
		text, err := os.ReadFile(filepath.Join(logs, "protection.log"))
		g.Must(err)
		lines, want := map[string]int{}, map[string]int{}
		for line := range strings.Lines(string(text)) {
			var entry struct{ Event, Kind, Namespace, Name string }
			g.Must(json.Unmarshal([]byte(line), &entry))
			lines[entry.Event+" "+entry.Kind+" "+entry.Name]++
		}
		for _, r := range reports {
			want["DeletionProtection "+r.line] = int(g.metric(r.metric, r.of))
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			return fmt.Errorf("the protection log (-want +got):\n%s", diff)
		}
		return nil
	})
}

// report is what is written down of the refused deletions of an object.
type report struct {
	metric, of, line string
	refuse           func()
	refusals         int
}

// isReported has a deletion refused until so many are reported, and checks that no more are reported than there were. A report is not vouched
// for: the API server waits a second for it, and may not have read yet where a new manager serves.
func (g *guard) isReported(r *report, want int) {
	g.Helper()
	g.Eventually("a refusal is reported", func() error {
		r.refuse()
		r.refusals++
		got := int(g.metric(r.metric, r.of))
		if got > r.refusals {
			g.Fatalf("%s of %s is %d after %d refusals", r.metric, r.of, got, r.refusals)
		}
		if got < want {
			return fmt.Errorf("%s of %s is %d, want %d", r.metric, r.of, got, want)
		}
		return nil
	})
}
