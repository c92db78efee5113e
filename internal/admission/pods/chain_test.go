package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inject"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// known is what a test knows of its cluster.
type known struct {
	candidates []*inject.Candidate
	all        *inject.Candidates // of them, made by chainOf
	namespace  map[string]string
	revisions  []*appsv1.ControllerRevision
}

func (k known) Candidates() (*inject.Candidates, error) { return k.all, nil }

func (k known) Namespace(context.Context, string) (map[string]string, error) { return k.namespace, nil }

func (k known) Revision(_ context.Context, set *v1beta1.SidecarSet) (*appsv1.ControllerRevision, error) {
	found, err := inject.Find(set, k.revisions)
	if err != nil {
		return nil, Denied{err}
	}
	return found, nil
}

// chainOf returns the chain as the manager has it, with a clock that never stands still and names that count.
func chainOf(k known) Chain {
	k.all = inject.NewCandidates(k.candidates...)
	clock, count := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
	return Chain{Steps: []Step{
		Sidecars(SidecarOptions{Facts: k, Now: func() time.Time {
			clock = clock.Add(time.Minute)
			return clock
		}}),
		LaunchOrder(func(length int) string {
			count++
			return fmt.Sprintf("%0*d", length, count)
		}),
	}}
}

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func setOf(t fataler, name, spec string) *v1beta1.SidecarSet {
	t.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &set.Spec); err != nil {
		t.Fatal(err)
	}
	if set.Spec.Selector == nil {
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	}
	return set
}

// create asks for a Pod in JSON, and returns the answer and the Pod that the API server makes of it.
func create(t fataler, c Chain, raw []byte, change ...func(*admission.Request)) (admission.Response, []byte) {
	t.Helper()
	from := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "default", Object: runtime.RawExtension{Raw: raw}}}
	for _, f := range change {
		f(&from)
	}
	response := c.Handle(context.Background(), from)
	if len(response.Patch) == 0 {
		return response, raw
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.Apply(raw)
	if err != nil {
		t.Fatal(fmt.Sprintf("applying %s to %s: %v", response.Patch, raw, err))
	}
	return response, out
}

func jsonOf(t fataler, text string) []byte {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOnePatchOfWhatChanges(t *testing.T) {
	set := inject.NewCandidate(setOf(t, "log", `{containers: [{name: agent, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "10"}]}]}`))
	raw := jsonOf(t, `{apiVersion: v1, kind: Pod, metadata: {generateName: web-, labels: {app: web}}, spec: {ofTheFuture: 1, containers: [{name: app, image: nginx, ofTheFuture: 2}]}}`)
	response, out := create(t, chainOf(known{candidates: []*inject.Candidate{set}}), raw)
	if !response.Allowed {
		t.Fatalf("refused: %v", response.Result)
	}
	var operations []struct{ Op, Path string }
	if err := json.Unmarshal(response.Patch, &operations); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, operation := range operations {
		paths = append(paths, operation.Op+" "+operation.Path)
	}
	want := []string{"add /metadata/annotations", "add /metadata/name", "replace /spec/containers"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var p struct {
		Metadata metav1.ObjectMeta
		Spec     struct {
			OfTheFuture int
			Containers  []struct {
				corev1.Container
				OfTheFuture int
			}
		}
	}
	if err := json.Unmarshal(out, &p); err != nil {
		t.Fatal(err)
	}
	if p.Spec.OfTheFuture != 1 || p.Spec.Containers[1].OfTheFuture != 2 {
		t.Errorf("what this build does not know is lost: %s", out)
	}
	for i, key := range []string{"p_10", "p_0"} {
		env := p.Spec.Containers[i].Env
		if ref := env[len(env)-1].ValueFrom.ConfigMapKeyRef; p.Metadata.Name != "web-00001" || ref.Name != "web-00001-barrier" || ref.Key != key {
			t.Errorf("container %d of Pod %s waits for %+v, want %s", i, p.Metadata.Name, ref, key)
		}
	}
}

func TestAnswers(t *testing.T) {
	candidates := []*inject.Candidate{
		inject.NewCandidate(setOf(t, "broken", `{selector: {matchLabels: {app: broken}}, containers: [{name: a, resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: cpu*cpu}}}}]}`)),
		inject.NewCandidate(setOf(t, "log", `{containers: [{name: log}]}`)),
		inject.NewCandidate(setOf(t, "pinned", `{selector: {matchLabels: {app: pinned}}, containers: [{name: a}], injectionStrategy: {revision: {customVersion: v9}}}`)),
	}
	const plain = `{metadata: {labels: {app: %s}}, spec: {containers: [{name: app}]}}`
	const mirror = `{metadata: {labels: {app: web}, annotations: {kubernetes.io/config.mirror: x}}, spec: {containers: [{name: app}]}}`
	for name, tc := range map[string]struct {
		pod     string
		change  func(*admission.Request)
		code    int32
		message string
		patched bool
	}{
		"a Pod that is selected":                      {pod: fmt.Sprintf(plain, "web"), patched: true},
		"a Pod that nothing selects":                  {pod: fmt.Sprintf(plain, "other")},
		"an update":                                   {pod: fmt.Sprintf(plain, "web"), change: func(r *admission.Request) { r.Operation = admissionv1.Update }},
		"a subresource":                               {pod: fmt.Sprintf(plain, "web"), change: func(r *admission.Request) { r.SubResource = "binding" }},
		"the mirror of a static Pod, by its node":     {pod: mirror, change: func(r *admission.Request) { r.UserInfo.Groups = []string{user.NodesGroup} }},
		"what somebody else calls a mirror":           {pod: mirror, patched: true},
		"a Pod of a node's that is no mirror":         {pod: fmt.Sprintf(plain, "web"), change: func(r *admission.Request) { r.UserInfo.Groups = []string{user.NodesGroup} }, patched: true},
		"a Pod whose author says that it has ended":   {pod: `{metadata: {labels: {app: web}}, spec: {containers: [{name: app}]}, status: {phase: Succeeded}}`, patched: true},
		"a Pod whose author says that it is deleted":  {pod: `{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", labels: {app: web}}, spec: {containers: [{name: app}]}}`, patched: true},
		"a SidecarSet that can't be read":             {pod: fmt.Sprintf(plain, "broken"), code: http.StatusUnprocessableEntity, message: `SidecarSet broken: container a: limits: reading "cpu*cpu": two quantities can't be multiplied`},
		"a revision that is missing":                  {pod: fmt.Sprintf(plain, "pinned"), code: http.StatusUnprocessableEntity, message: "there is no revision of it with the version v9, which injectionStrategy.revision.customVersion asks for"},
		"a priority that is no number":                {pod: `{spec: {containers: [{name: a, env: [{name: KRUISE_CONTAINER_PRIORITY, value: x}]}, {name: b}]}}`, code: http.StatusUnprocessableEntity, message: `container a has KRUISE_CONTAINER_PRIORITY="x": write a whole number from -2147483647 to 2147483647`},
		"what is not a Pod":                           {pod: `{spec: {containers: [{name: [1]}]}}`, code: http.StatusBadRequest},
		"a container that was held in an earlier Pod": {pod: `{spec: {containers: [{name: a, env: [{name: KRUISE_CONTAINER_BARRIER, value: x}]}]}}`, patched: true},
	} {
		t.Run(name, func(t *testing.T) {
			change := tc.change
			if change == nil {
				change = func(*admission.Request) {}
			}
			raw := jsonOf(t, tc.pod)
			raw = append([]byte(`{"apiVersion":"v1","kind":"Pod",`), raw[1:]...)
			response, _ := create(t, chainOf(known{candidates: candidates}), raw, change)
			if response.Allowed != (tc.code == 0) || len(response.Patch) > 0 != tc.patched {
				t.Fatalf("allowed %t with the changes %s: %v", response.Allowed, response.Patch, response.Result)
			}
			if tc.code != 0 && (response.Result.Code != tc.code || tc.message != "" && response.Result.Message != tc.message) {
				t.Errorf("answered %d %s, want %d %s", response.Result.Code, response.Result.Message, tc.code, tc.message)
			}
		})
	}
}

func TestOtherNamespacesAreLeftAlone(t *testing.T) {
	chain := chainOf(known{candidates: []*inject.Candidate{inject.NewCandidate(setOf(t, "log", `{containers: [{name: log}]}`))}})
	chain.Within = "here"
	raw := jsonOf(t, `{apiVersion: v1, kind: Pod, metadata: {labels: {app: web}}, spec: {containers: [{name: app}]}}`)
	for namespace, want := range map[string]bool{"here": true, "elsewhere": false} {
		response, _ := create(t, chain, raw, func(r *admission.Request) { r.Namespace = namespace })
		if !response.Allowed || len(response.Patch) > 0 != want {
			t.Errorf("a Pod of namespace %s gets %s", namespace, response.Patch)
		}
	}
}

func TestAServerFaultIsNotTheUsers(t *testing.T) {
	chain := Chain{Steps: []Step{{Name: "broken", Run: func(context.Context, *Subject) error { return errors.New("no answer") }}}}
	response, _ := create(t, chain, jsonOf(t, `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}]}}`))
	if response.Allowed || response.Result.Code != http.StatusInternalServerError {
		t.Errorf("answered %+v", response.Result)
	}
}

// TestRevisionsTakeTurns: with a partition of 70% and the revision v1 asked for, 30 of 100 new Pods get the present spec, and dry runs don't count.
func TestRevisionsTakeTurns(t *testing.T) {
	old := setOf(t, "log", `{customVersion: v1, containers: [{name: log, image: old}]}`)
	revision, err := sidecar.NewRevision(old, "kruise-system", 0)
	if err != nil {
		t.Fatal(err)
	}
	set := setOf(t, "log", `{customVersion: v2, containers: [{name: log, image: new}], injectionStrategy: {revision: {customVersion: v1, policy: Partial}}, updateStrategy: {partition: 70%}}`)
	chain := chainOf(known{candidates: []*inject.Candidate{inject.NewCandidate(set)}, revisions: []*appsv1.ControllerRevision{revision}})
	raw := jsonOf(t, `{apiVersion: v1, kind: Pod, metadata: {labels: {app: web}}, spec: {containers: [{name: app}]}}`)
	images := map[string]int{}
	for range 100 {
		_, out := create(t, chain, raw)
		yes := true
		create(t, chain, raw, func(r *admission.Request) { r.DryRun = &yes })
		p := &corev1.Pod{}
		if err := json.Unmarshal(out, p); err != nil {
			t.Fatal(err)
		}
		images[p.Spec.Containers[0].Image]++
		name := revision.Name
		if p.Spec.Containers[0].Image == "new" {
			name, _ = sidecar.RevisionName(set)
		}
		if records, err := sidecar.RecordsIn(p, keys.SidecarSetHash); err != nil || records["log"].ControllerRevision != name {
			t.Fatalf("%s is noted (%v), want %s", records["log"].ControllerRevision, err, name)
		}
		if again, _ := create(t, chain, out); len(again.Patches) > 0 {
			t.Fatalf("asked again, a Pod is changed: %v", again.Patches)
		}
	}
	if diff := cmp.Diff(map[string]int{"old": 70, "new": 30}, images); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNothingIsKeptOfSidecarSetsThatAreGone: neither their series nor how many Pods got which of their revisions.
func TestNothingIsKeptOfSidecarSetsThatAreGone(t *testing.T) {
	registry := prometheus.NewRegistry()
	counted, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	set := setOf(t, "gone", `{containers: [{name: gone, image: i}]}`)
	catalog := &Catalog{CatalogOptions: CatalogOptions{Metrics: counted}, byName: map[string]*inject.Candidate{}}
	catalog.put(set)
	counted.countReplaced(set.Name)
	catalog.remove(set)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families { // one without series is not among them
		if family.GetName() == "kruise_pod_admission_replaced_containers_total" {
			t.Errorf("a SidecarSet that is gone has series: %v", family)
		}
	}

	split := `{customVersion: v2, containers: [{name: log, image: new}], injectionStrategy: {revision: {customVersion: v1, policy: Partial}}, updateStrategy: {partition: 70%}}`
	facts := &known{}
	step := &sidecars{SidecarOptions: SidecarOptions{Facts: facts, Now: time.Now}, counts: map[string]int{}, compiled: map[types.UID]*inject.Sidecars{}}
	for _, name := range []string{"first", "second", "third"} {
		old := setOf(t, name, `{customVersion: v1, containers: [{name: log, image: old}]}`)
		revision, err := sidecar.NewRevision(old, "kruise-system", 0)
		if err != nil {
			t.Fatal(err)
		}
		facts.all, facts.revisions = inject.NewCandidates(inject.NewCandidate(setOf(t, name, split))), []*appsv1.ControllerRevision{revision}
		create(t, Chain{Steps: []Step{{Name: "sidecarset", Run: step.run}}},
			jsonOf(t, `{apiVersion: v1, kind: Pod, metadata: {labels: {app: web}}, spec: {containers: [{name: app}]}}`))
	}
	if diff := cmp.Diff(map[string]int{"third": 1}, step.counts); diff != "" {
		t.Errorf("numbers that are kept (-want +got):\n%s", diff)
	}
}
