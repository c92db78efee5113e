package inplace

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// The recorded Pods were updated by the software that these annotations are shared with, in a cluster with a kubelet 1.36 and containerd.

func TestRecordedAnnotationsKeepTheirBytes(t *testing.T) {
	for _, moment := range []string{"in its grace period", "updated", "updated by its hash alone"} {
		t.Run(moment, func(t *testing.T) {
			p := recorded(t, moment)
			got, err := json.Marshal(stateOf(t, p))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p.Annotations[keys.InPlaceUpdateState], string(got)); diff != "" {
				t.Error(diff)
			}
			planned, err := Plan(p)
			if err != nil {
				t.Fatal(err)
			}
			if planned == nil {
				return
			}
			if got, err = json.Marshal(planned); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p.Annotations[keys.InPlaceUpdateGrace], string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The lifecycle state and its timestamp are the business of another package.
func withoutLifecycle(p *corev1.Pod) *corev1.Pod {
	delete(p.Labels, keys.LifecycleState)
	delete(p.Annotations, keys.LifecycleTimestamp)
	return p
}

func TestAnUpdateWithGraceGoesAsRecorded(t *testing.T) {
	began := time.Date(2026, 11, 21, 5, 57, 42, 0, time.UTC)
	p := withoutLifecycle(recorded(t, "created"))
	Begin(p, Change{Images: map[string]string{"nginx": "nginx:mainline"}}, Target{
		Revision:     "graceful-88dd87cc",
		Labels:       map[string]string{"controller-revision-hash": "88dd87cc", keys.PodTemplateHash: "88dd87cc"},
		GraceSeconds: 10, Now: began,
	})
	if diff := cmp.Diff(withoutLifecycle(recorded(t, "in its grace period")), p); diff != "" {
		t.Fatal(diff)
	}

	if got := Advance(p, Options{}, began.Add(9500*time.Millisecond)); got != (Step{Wait: time.Second}) {
		t.Fatalf("half a second before the grace period is over: %+v", got)
	}
	if got := Advance(p, Options{}, began.Add(10*time.Second)); got != (Step{Changed: true}) {
		t.Fatalf("when the grace period is over: %+v", got)
	}
	want := recorded(t, "updated")
	state, wantState := stateOf(t, p), stateOf(t, want)
	last := state.LastContainerStatuses["nginx"]
	if last.ContainerID == "" || last.Image != "nginx:alpine" {
		t.Errorf("the record of nginx is %+v, want the container and image that were replaced in it", last)
	}
	last.ContainerID, last.Image = "", ""
	state.LastContainerStatuses["nginx"] = last
	if diff := cmp.Diff(wantState, state); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want.Spec, p.Spec); diff != "" {
		t.Error(diff)
	}
}

func TestRecordedProgress(t *testing.T) {
	cases := map[string]struct {
		moment string
		edit   func(*corev1.Pod)
		want   Verdict
	}{
		"a Pod that was never updated": {moment: "created", want: Verdict{Done: true}},
		"a Pod in its grace period":    {moment: "in its grace period", want: Verdict{Why: "its update is planned and has not begun"}},
		"an updated Pod":               {moment: "updated", want: Verdict{Done: true}},
		"an updated Pod without a node daemon": {
			moment: "updated",
			edit:   func(p *corev1.Pod) { delete(p.Annotations, keys.RuntimeContainersMeta) },
			want:   Verdict{Done: true},
		},
		"an updated Pod whose kubelet is behind": {
			moment: "updated",
			edit:   func(p *corev1.Pod) { p.Generation++ },
			want:   Verdict{Why: "the kubelet has not seen the change yet"},
		},
		"a Pod whose revision is noted by its hash alone": {moment: "updated by its hash alone", want: Verdict{Done: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := recorded(t, tc.moment)
			if tc.edit != nil {
				tc.edit(p)
			}
			if diff := cmp.Diff(tc.want, Progress(p, everything())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRecordedHashes(t *testing.T) {
	for _, moment := range []string{"created", "in its grace period", "updated", "updated by its hash alone", "with a sidecar"} {
		t.Run(moment, func(t *testing.T) {
			p := recorded(t, moment)
			metas := runtimeMeta(p)
			if len(metas) != len(p.Spec.Containers) {
				t.Fatalf("%d containers are known to the node daemon, want %d", len(metas), len(p.Spec.Containers))
			}
			for name, meta := range metas {
				container := pod.Container(p, name)
				if got := plainHash(container); got != meta.Hashes.PlainHash {
					t.Errorf("the hash of %s is %d, want the kubelet's %d", name, got, meta.Hashes.PlainHash)
				}
				if got := EnvironmentHash(Environment(p, container)); got != meta.Hashes.ExtractedEnvFromMetadataHash {
					t.Errorf(
						"the hash of %s's environment is %d, want the node daemon's %d",
						name,
						got,
						meta.Hashes.ExtractedEnvFromMetadataHash,
					)
				}
			}
			if !runsAsSpecified(p) {
				t.Error("the Pod does not run as specified, want that it does")
			}
		})
	}
}

func TestMetaOfAnotherContainerVouchesForNothing(t *testing.T) {
	cases := map[string]func(*corev1.Pod){
		"another container runs by now":  func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "containerd://other" },
		"the spec names another image":   func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nginx:1.29" },
		"a container is not known":       func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, container("x", "x:v1")) },
		"the annotation can't be read":   func(p *corev1.Pod) { p.Annotations[keys.RuntimeContainersMeta] = "{" },
		"there is no annotation":         func(p *corev1.Pod) { delete(p.Annotations, keys.RuntimeContainersMeta) },
		"the container has not reported": func(p *corev1.Pod) { p.Status.ContainerStatuses = nil },
	}
	for name, edit := range cases {
		t.Run(name, func(t *testing.T) {
			p := recorded(t, "updated")
			edit(p)
			if runsAsSpecified(p) {
				t.Error("the Pod counts as running as specified")
			}
		})
	}
}

func TestAKubeletBefore131HashesTheWholeContainer(t *testing.T) {
	p := recorded(t, "updated")
	metas := runtimeMeta(p)["nginx"]
	metas.Hashes.PlainHash = olderPlainHash(&p.Spec.Containers[0])
	if metas.Hashes.PlainHash == plainHash(&p.Spec.Containers[0]) {
		t.Fatal("both hashes are the same")
	}
	write(p, map[string]any{"containers": []any{metas}}, keys.RuntimeContainersMeta)
	if !runsAsSpecified(p) {
		t.Error("the Pod does not run as specified, want that it does")
	}
}
