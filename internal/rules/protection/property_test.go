package protection

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/test/kit/dispatch"
)

// deletable is a kind of objects that somebody may want to delete.
type deletable struct {
	schema.GroupVersionResource
	kind string
	// free kinds are never kept.
	free bool
	// holds says in the words of a refusal what an object would take along; nil for kinds that hold nothing.
	holds func(*unstructured.Unstructured) string
}

func replicas(o *unstructured.Unstructured) string {
	n, given, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if !given {
		n = 1
	}
	return told("replicas", n)
}

func counted(what string, path ...string) func(*unstructured.Unstructured) string {
	return func(o *unstructured.Unstructured) string {
		n, _, _ := unstructured.NestedInt64(o.Object, path...)
		return told(what, n)
	}
}

func jobs(o *unstructured.Unstructured) string {
	active, _, _ := unstructured.NestedSlice(o.Object, "status", "active")
	return told("active jobs", int64(len(active)))
}

func told(what string, n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d>0", what, n)
}

func bound(o *unstructured.Unstructured) string {
	if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase == "Bound" {
		return `status "Bound"`
	}
	return ""
}

// deletables are what docs/deletion-protection.md lists.
func deletables() []deletable {
	of := func(group, version, resource, kind string, holds func(*unstructured.Unstructured) string) deletable {
		return deletable{schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, kind, false, holds}
	}
	const ours = "apps.kruise.io"
	nodes, pods := counted("replicas", "status", "desiredNumberScheduled"), counted("active pods", "status", "active")
	free := of("", "v1", "pods", "Pod", replicas)
	forItself := of(ours, "v1beta1", "nodeimages", "NodeImage", nil)
	free.free, forItself.free = true, true
	return []deletable{
		of("apps", "v1", "deployments", "Deployment", replicas), of("apps", "v1", "replicasets", "ReplicaSet", replicas),
		of("apps", "v1", "statefulsets", "StatefulSet", replicas), of("apps", "v1", "daemonsets", "DaemonSet", nodes),
		of(ours, "v1beta1", "clonesets", "CloneSet", replicas), of(ours, "v1alpha1", "clonesets", "CloneSet", replicas),
		of(ours, "v1beta1", "statefulsets", "StatefulSet", replicas), of(ours, "v1beta1", "daemonsets", "DaemonSet", nodes),
		of(ours, "v1alpha1", "uniteddeployments", "UnitedDeployment", replicas),
		of("batch", "v1", "jobs", "Job", pods), of(ours, "v1beta1", "broadcastjobs", "BroadcastJob", pods),
		of("batch", "v1", "cronjobs", "CronJob", jobs), of(ours, "v1beta1", "advancedcronjobs", "AdvancedCronJob", jobs),
		of("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", bound), of("", "v1", "persistentvolumes", "PersistentVolume", bound),
		of("", "v1", "services", "Service", nil), of("networking.k8s.io", "v1", "ingresses", "Ingress", nil),
		of("", "v1", "secrets", "Secret", nil), of("", "v1", "configmaps", "ConfigMap", nil),
		of("", "v1", "namespaces", "Namespace", nil),
		of("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", nil),
		of(ours, "v1beta1", "sidecarsets", "SidecarSet", nil),
		of("policy.kruise.io", "v1beta1", "podunavailablebudgets", "PodUnavailableBudget", nil), free, forItself,
	}
}

// deletion is an object that is to be deleted, while the gate is on or off.
type deletion struct {
	deletable
	object *unstructured.Unstructured
	value  string
	isOn   bool
}

func deletions() *rapid.Generator[deletion] {
	return rapid.Custom(func(t *rapid.T) deletion {
		d := deletion{
			deletable: rapid.SampledFrom(deletables()).Draw(t, "kind"),
			value:     rapid.SampledFrom([]string{"", "Always", "Cascading", "Cascading", "always", "false"}).Draw(t, "value"),
			isOn:      rapid.IntRange(0, 7).Draw(t, "is off") > 0,
		}
		spec, status := map[string]any{}, map[string]any{}
		draw := func(name string, set func(n int64)) {
			if n := rapid.Int64Range(-1, 3).Draw(t, name); n >= 0 { // else it is not given
				set(n)
			}
		}
		draw("replicas", func(n int64) { spec["replicas"] = n })
		draw("nodes", func(n int64) { status["desiredNumberScheduled"] = n })
		draw("active", func(n int64) {
			status["active"] = n
			if strings.HasSuffix(d.Resource, "cronjobs") {
				var active []any
				for i := range n {
					active = append(active, map[string]any{"name": fmt.Sprint("job-", i)})
				}
				status["active"] = active
			}
		})
		if phase := rapid.SampledFrom([]string{"", "Bound", "Pending", "Released"}).Draw(t, "phase"); phase != "" {
			status["phase"] = phase
		}
		d.object = &unstructured.Unstructured{Object: map[string]any{"spec": spec, "status": status}}
		if rapid.Bool().Draw(t, "has no status") {
			delete(d.object.Object, "status")
		}
		d.object.SetGroupVersionKind(d.GroupVersion().WithKind(d.kind))
		d.object.SetName("web")
		if d.value != "" {
			d.object.SetLabels(map[string]string{"policy.kruise.io/delete-protection": d.value})
		}
		if rapid.IntRange(0, 5).Draw(t, "is leaving") == 0 {
			d.object.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1_800_000_000, 0)})
		}
		if rapid.Bool().Draw(t, "is owned") {
			d.object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Owner", Name: "boss", UID: "1"}})
		}
		return d
	})
}

// params are the webhooks by which the policy knows whether the gate is on.
func (d deletion) params() *admissionv1.ValidatingWebhookConfiguration {
	c := &admissionv1.ValidatingWebhookConfiguration{Webhooks: []admissionv1.ValidatingWebhook{{Name: "vcloneset.kb.io"}}}
	if d.isOn {
		c.Webhooks = append(c.Webhooks, admissionv1.ValidatingWebhook{Name: "vnamespace.kb.io"})
	}
	return c
}

// judges are the two that judge deletions: the policy of the API server, and the rule by which managers report and count.
type judges struct {
	policy dispatch.Policy
	rule   func(schema.GroupResource, *unstructured.Unstructured) string
}

const (
	ruleKept = "what has the label and holds something is kept"
	ruleFree = "nothing else is kept"
	ruleSame = "managers report what the API server says"
)

// broken returns what the judges do against their promises.
func (j judges) broken(d deletion) string {
	holds := ""
	if d.holds != nil {
		holds = d.holds(d.object)
	}
	want := ""
	switch {
	case d.free:
	case d.value == "Always":
		want = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always"
	case d.value == "Cascading" && holds != "":
		want = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and " + holds
	}
	if reported := j.rule(d.GroupVersionResource.GroupResource(), d.object); !d.free && reported != want {
		return fmt.Sprintf("%s: %s %s is reported with %q, want %q", ruleSame, d.kind, d.value, reported, want)
	}
	if !d.isOn || d.object.GetDeletionTimestamp() != nil {
		want = ""
	}
	refused := j.policy.Deletion(d.GroupVersionResource, d.object, d.params())
	said, advice, _ := strings.Cut(refused, "; ")
	switch {
	case want == "" && refused != "":
		return fmt.Sprintf("%s: %s %s is refused with %q", ruleFree, d.kind, d.value, refused)
	case want != "" && refused == "":
		return fmt.Sprintf("%s: %s %s is deleted, want %q", ruleKept, d.kind, d.value, want)
	case said != want:
		return fmt.Sprintf("%s: %s %s is refused with %q, want %q", ruleSame, d.kind, d.value, said, want)
	case refused != "" && !strings.Contains(advice, "to delete "+d.kind+" web all the same, remove this label from it"),
		refused != "" && strings.Contains(advice, "it is owned by Owner boss") != (len(d.object.GetOwnerReferences()) > 0):
		return fmt.Sprintf("%s: the advice is %q", ruleSame, advice)
	}
	return ""
}

// manifest returns the text of the policy that is shipped.
func manifest(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../../../config/protection/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// read returns the first policy of a manifest.
func read(t testing.TB, text string) dispatch.Policy {
	t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{}
	if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096).Decode(policy); err != nil {
		t.Fatal(err)
	}
	compiled, err := dispatch.ReadPolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// TestWhatIsPromisedIsKept: of whatever object and label, the API server keeps what is promised and nothing else, and managers report the
// same.
func TestWhatIsPromisedIsKept(t *testing.T) {
	shipped := judges{read(t, manifest(t)), Refusal}
	rapid.Check(t, func(t *rapid.T) {
		if problem := shipped.broken(deletions().Draw(t, "deletion")); problem != "" {
			t.Fatal(problem)
		}
	})
}

// TestMistakesShow makes mistakes in the policy and in the rule on purpose: TestWhatIsPromisedIsKept must see each of them.
func TestMistakesShow(t *testing.T) {
	shipped := manifest(t)
	forgets := func(of string) func(schema.GroupResource, *unstructured.Unstructured) string {
		return func(r schema.GroupResource, o *unstructured.Unstructured) string {
			if why := Refusal(r, o); !strings.Contains(why, of) {
				return why
			}
			return ""
		}
	}
	for name, tc := range map[string]struct {
		from, to string
		rule     func(schema.GroupResource, *unstructured.Unstructured) string
		want     string
	}{
		"replicas that are not given are none": {from: "?replicas.orValue(1)", to: "?replicas.orValue(0)", want: ruleKept},
		"a kind is forgotten":                  {from: "'uniteddeployments.apps.kruise.io'", to: "'nothing'", want: ruleKept},
		"a resource is not looked at":          {from: "persistentvolumes, secrets", to: "secrets", want: ruleKept},
		"a group is not looked at":             {from: "[apps.kruise.io, policy.kruise.io]", to: "[apps.kruise.io]", want: ruleKept},
		"jobs that run do not count":           {from: "['jobs.batch', 'broadcastjobs.apps.kruise.io']", to: "['broadcastjobs.apps.kruise.io']", want: ruleKept},
		"a list of jobs is not looked at":      {from: "size(variables.old.?status.?active.orValue([]))", to: "0", want: ruleKept},
		"a claim need not be bound":            {from: "orValue('') == 'Bound'", to: "orValue('') != 'Bound'", want: ruleFree},
		"Always is not kept":                   {from: `"variables.value != 'Always'"`, to: `"true"`, want: ruleKept},
		"Always is kept in any spelling":       {from: `"variables.value != 'Always'"`, to: `"variables.value.lowerAscii() != 'always'"`, want: ruleFree},
		"every value counts as Cascading":      {from: "variables.value != 'Cascading' ||", to: "variables.value == 'Always' ||", want: ruleFree},
		"the gate does not matter":             {from: "exists(w, w.name == 'vnamespace.kb.io')", to: "exists(w, true)", want: ruleFree},
		"what leaves is held":                  {from: "&& !has(oldObject.metadata.deletionTimestamp)", to: "", want: ruleFree},
		"Pods are kept":                        {from: "[namespaces, services", to: "[namespaces, pods, services", want: ruleFree},
		"what Kruise makes is kept":            {from: "[nodeimages, nodepodprobes]", to: "[nodepodprobes]", want: ruleFree},
		"an expression that always fails":      {from: "int(variables.old.?status.?active.orValue(0))", to: "int(variables.old.nothing)", want: ruleFree},
		"the owners are not told":              {from: "size(variables.owners) == 0", to: "true", want: "the advice is"},
		"the report forgets claims":            {rule: forgets("Bound"), want: ruleSame},
		"the report forgets replicas of one":   {rule: forgets("replicas 1>0"), want: ruleSame},
	} {
		t.Run(name, func(t *testing.T) {
			mistaken := judges{read(t, strings.Replace(shipped, tc.from, tc.to, 1)), Refusal}
			if tc.rule != nil {
				mistaken.rule = tc.rule
			} else if strings.Count(shipped, tc.from) == 0 {
				t.Fatalf("the policy has no %s", tc.from)
			}
			const deletionsForMistake = 4000
			for seed := range deletionsForMistake {
				if strings.Contains(mistaken.broken(deletions().Example(seed)), tc.want) {
					return
				}
			}
			t.Errorf("%d deletions do not show it as %q", deletionsForMistake, tc.want)
		})
	}
}
