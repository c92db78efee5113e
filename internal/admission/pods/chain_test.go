package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
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
	namespace  map[string]string
	revisions  []*appsv1.ControllerRevision
}

func (k known) Candidates() ([]*inject.Candidate, error) { return k.candidates, nil }

func (k known) Namespace(context.Context, string) (map[string]string, error) { return k.namespace, nil }

func (k known) Revision(_ context.Context, set *v1beta1.SidecarSet) (*appsv1.ControllerRevision, error) {
	found, err := inject.Find(set, k.revisions)
	if err != nil {
		return nil, Refusal{err}
	}
	return found, nil
}

// chainOf returns the chain as the manager has it, with a clock that never stands still and names that count.
func chainOf(k known) Chain {
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
	if len(response.Patches) == 0 {
		return response, raw
	}
	encoded, err := json.Marshal(response.Patches)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.Apply(raw)
	if err != nil {
		t.Fatal(fmt.Sprintf("applying %s to %s: %v", encoded, raw, err))
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
	var paths []string
	for _, operation := range response.Patches {
		paths = append(paths, operation.Operation+" "+operation.Path)
	}
	want := []string{"add /metadata/annotations", "add /metadata/name", "add /spec/containers/0", "add /spec/containers/1/env"}
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
		"the mirror of a static Pod":                  {pod: `{metadata: {labels: {app: web}, annotations: {kubernetes.io/config.mirror: x}}, spec: {containers: [{name: app}]}}`},
		"a Pod that has ended":                        {pod: `{metadata: {labels: {app: web}}, spec: {containers: [{name: app}]}, status: {phase: Succeeded}}`},
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
			if response.Allowed != (tc.code == 0) || len(response.Patches) > 0 != tc.patched {
				t.Fatalf("allowed %t with %d changes: %v", response.Allowed, len(response.Patches), response.Result)
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
		if !response.Allowed || len(response.Patches) > 0 != want {
			t.Errorf("a Pod of namespace %s gets %v", namespace, response.Patches)
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

// TestProperties draws Pods and SidecarSets. Done again on its own result the chain changes nothing; the Pod's own containers stay, in their order and
// with all that they had; no name is there twice; all that is mounted exists; and containers stand on the side that they ask for.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := rapid.IntRange(1, 3).Draw(t, "containers")
		p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Labels: map[string]string{"app": "web"}}}
		for i := range own {
			c := corev1.Container{Name: fmt.Sprintf("app-%d", i), VolumeMounts: mounts(t, "app"), Env: variables(t)}
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"v0", "v1", "v2"}), 0, 3, rapid.ID).Draw(t, "volumes") {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
		}
		declareMounted(p)
		var candidates []*inject.Candidate
		for i := range rapid.IntRange(0, 3).Draw(t, "sets") {
			candidates = append(candidates, inject.NewCandidate(drawSet(t, i)))
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		chain := chainOf(known{candidates: candidates})
		response, out := create(t, chain, raw)
		if !response.Allowed {
			t.Fatalf("refused: %v", response.Result)
		}
		if again, _ := create(t, chain, out); len(again.Patches) > 0 {
			t.Fatalf("asked again, it changes %v of %s", again.Patches, out)
		}
		after := &corev1.Pod{}
		if err := json.Unmarshal(out, after); err != nil {
			t.Fatal(err)
		}
		check(t, p, after, candidates)
	})
}

func mounts(t *rapid.T, label string) []corev1.VolumeMount {
	var all []corev1.VolumeMount
	for _, at := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/a", "/b", "/c"}), 0, 3, rapid.ID).Draw(t, label+" mounts") {
		all = append(all, corev1.VolumeMount{Name: rapid.SampledFrom([]string{"v0", "v1", "v2"}).Draw(t, "volume"), MountPath: at})
	}
	return all
}

func variables(t *rapid.T) []corev1.EnvVar {
	var all []corev1.EnvVar
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "B", "KRUISE_CONTAINER_PRIORITY"}), 0, 3, rapid.ID).Draw(t, "variables") {
		all = append(all, corev1.EnvVar{Name: name, Value: fmt.Sprint(rapid.IntRange(-1, 1).Draw(t, "value"))})
	}
	return all
}

// declareMounted gives the Pod the volumes that it mounts, as the API server would ask for.
func declareMounted(p *corev1.Pod) {
	for _, c := range p.Spec.Containers {
		for _, mount := range c.VolumeMounts {
			if !slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name }) {
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: mount.Name})
			}
		}
	}
}

func drawSet(t *rapid.T, number int) *v1beta1.SidecarSet {
	set := setOf(t, fmt.Sprintf("set-%d", number), `{volumes: [{name: v0}, {name: v1}, {name: v2}, {name: unused}]}`)
	for i := range rapid.IntRange(1, 2).Draw(t, "sidecars") {
		c := v1beta1.SidecarContainer{Container: corev1.Container{Name: fmt.Sprintf("set-%d-%d", number, i), VolumeMounts: mounts(t, "sidecar"), Env: variables(t)}}
		c.PodInjectPolicy = rapid.SampledFrom([]v1beta1.PodInjectPolicyType{v1beta1.BeforeAppContainerType, v1beta1.AfterAppContainerType}).Draw(t, "place")
		c.ShareVolumePolicy.Type = rapid.SampledFrom([]v1beta1.ShareVolumePolicyType{v1beta1.ShareVolumePolicyEnabled, v1beta1.ShareVolumePolicyDisabled}).Draw(t, "share")
		if rapid.Bool().Draw(t, "transfer") {
			c.TransferEnv = []v1beta1.TransferEnvVar{{SourceContainerName: "app-0", EnvNames: []string{"B", "A"}}}
		}
		if rapid.Bool().Draw(t, "hot") {
			c.UpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy{UpgradeType: v1beta1.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: "e"}
		}
		if rapid.Bool().Draw(t, "init") {
			c.UpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy{}
			set.Spec.InitContainers = append(set.Spec.InitContainers, c)
		} else {
			set.Spec.Containers = append(set.Spec.Containers, c)
		}
	}
	return set
}

func check(t *rapid.T, before, after *corev1.Pod, candidates []*inject.Candidate) {
	var kept []corev1.Container
	seen := map[string]bool{}
	for _, c := range slices.Concat(after.Spec.InitContainers, after.Spec.Containers) {
		if seen[c.Name] {
			t.Errorf("there are two containers %s", c.Name)
		}
		seen[c.Name] = true
		paths := map[string]bool{}
		for _, mount := range c.VolumeMounts {
			if paths[mount.MountPath] {
				t.Errorf("container %s mounts two volumes at %s", c.Name, mount.MountPath)
			}
			paths[mount.MountPath] = true
			if !slices.ContainsFunc(after.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name }) {
				t.Errorf("container %s mounts volume %s, which does not exist", c.Name, mount.Name)
			}
		}
	}
	for _, c := range after.Spec.Containers {
		if strings.HasPrefix(c.Name, "app-") {
			c.Env = slices.DeleteFunc(c.Env, func(env corev1.EnvVar) bool { return env.Name == keys.ContainerBarrierEnv })
			kept = append(kept, c)
		}
	}
	if diff := cmp.Diff(before.Spec.Containers, kept, cmp.Comparer(func(a, b []corev1.EnvVar) bool {
		return slices.EqualFunc(a, b, func(a, b corev1.EnvVar) bool { return a.Name == b.Name && a.Value == b.Value })
	})); diff != "" {
		t.Errorf("the Pod's own containers have changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(before.Spec.Volumes, after.Spec.Volumes[:len(before.Spec.Volumes)], cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the Pod's own volumes have changed (-before +after):\n%s", diff)
	}
	first := slices.IndexFunc(after.Spec.Containers, func(c corev1.Container) bool { return strings.HasPrefix(c.Name, "app-") })
	for _, candidate := range candidates {
		for _, c := range candidate.Set.Spec.Containers {
			at := slices.IndexFunc(after.Spec.Containers, func(o corev1.Container) bool { return o.Name == c.Name || o.Name == c.Name+"-1" })
			if at < 0 || (at < first) != (c.PodInjectPolicy == v1beta1.BeforeAppContainerType) {
				t.Errorf("sidecar %s, which is to be %s, is at %d, the app at %d", c.Name, c.PodInjectPolicy, at, first)
			}
		}
	}
}

// BenchmarkAdmission measures the handler alone, for a Pod of ten containers: with 500 SidecarSets of which none selects it, and of which one does.
func BenchmarkAdmission(b *testing.B) {
	for name, app := range map[string]string{"none of 500 applies": "other", "one of 500 applies": "web-7"} {
		b.Run(name, func(b *testing.B) {
			var candidates []*inject.Candidate
			for i := range 500 {
				candidates = append(candidates, inject.NewCandidate(setOf(b, fmt.Sprintf("set-%03d", i),
					fmt.Sprintf(`{selector: {matchLabels: {app: web-%d}}, containers: [{name: log, image: busybox, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, emptyDir: {}}]}`, i))))
			}
			chain := chainOf(known{candidates: candidates})
			p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": app}}}
			for i := range 10 {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
					Name: fmt.Sprint(i), Image: "nginx", Env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "b"}},
					Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
					VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}, TerminationMessagePath: "/dev/termination-log",
				})
			}
			raw, err := json.Marshal(p)
			if err != nil {
				b.Fatal(err)
			}
			from := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "default", Object: runtime.RawExtension{Raw: raw}}}
			b.ReportAllocs()
			for b.Loop() {
				if response := chain.Handle(b.Context(), from); !response.Allowed {
					b.Fatal(response.Result)
				}
			}
		})
	}
}
