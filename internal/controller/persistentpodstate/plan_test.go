package persistentpodstate

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/podstate"
)

const host = "kubernetes.io/hostname"

func noon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

func snapshot() Snapshot {
	state := &v1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pps", Generation: 2}}
	state.Spec.TargetRef = v1beta1.PersistentPodStateTarget{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
	state.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: []string{host}}
	state.Status.PodStates = map[string]v1beta1.PodState{"web-0": {NodeName: "n1", NodeTopologyLabels: map[string]string{host: "n1"}}}
	return Snapshot{State: state, Now: noon(), Target: &Target{Places: podstate.Places{Known: true, Ordinal: true, Workload: "web", Replicas: 1}}}
}

// stuck is a Pod that was bound to its place and has found none for so many seconds.
func stuck(seconds int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0", Annotations: map[string]string{keys.InjectedPodState: "pps"}}}
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available",
		LastTransitionTime: metav1.NewTime(noon().Add(-time.Duration(seconds) * time.Second)),
	}}
	return p
}

func TestPlan(t *testing.T) {
	fallback := func(action v1beta1.PersistentPodStateFallbackAction) func(*Snapshot) {
		return func(s *Snapshot) {
			s.State.Spec.Fallback = &v1beta1.PersistentPodStateFallback{AfterSeconds: 60, Action: action}
		}
	}
	forgotten := func(s *Snapshot) { s.State.Status.PodStates = nil }
	waits := func(seconds int) func(*Snapshot) {
		return func(s *Snapshot) { s.Pods = []*corev1.Pod{stuck(seconds)} }
	}
	cases := map[string]struct {
		with    []func(*Snapshot)
		writes  []string
		holds   int
		recheck time.Duration
		reason  string
	}{
		"at rest":                   {nil, nil, 0, 0, v1beta1.PersistentPodStateRecording},
		"the target does not exist": {[]func(*Snapshot){func(s *Snapshot) { s.Target = nil }}, nil, 0, 0, v1beta1.PersistentPodStateTargetNotFound},
		"the target is deleted":     {[]func(*Snapshot){func(s *Snapshot) { s.Target.Deleting = true }}, nil, 0, 0, v1beta1.PersistentPodStateTargetDeleting},
		"no name comes again":       {[]func(*Snapshot){func(s *Snapshot) { s.Target.Renames = true }}, nil, 0, 0, v1beta1.PersistentPodStateNamesNotReused},
		"a Pod waits a moment":      {[]func(*Snapshot){waits(4)}, nil, 0, 6 * time.Second, v1beta1.PersistentPodStateRecording},
		"a Pod waits":               {[]func(*Snapshot){waits(600)}, nil, 1, 0, v1beta1.PersistentPodStateUnschedulable},
		"a Pod waits for the fallback": {
			[]func(*Snapshot){waits(20), fallback("Delete")}, nil, 1, 40 * time.Second, v1beta1.PersistentPodStateUnschedulable,
		},
		"its record has still to go":       {[]func(*Snapshot){waits(60), fallback("Delete")}, nil, 1, 0, v1beta1.PersistentPodStateUnschedulable},
		"it is deleted after its record":   {[]func(*Snapshot){waits(60), fallback("Delete"), forgotten}, []string{"delete web-0"}, 1, 0, v1beta1.PersistentPodStateUnschedulable},
		"it is left alone":                 {[]func(*Snapshot){waits(60), fallback("Ignore"), forgotten}, nil, 1, 0, v1beta1.PersistentPodStateUnschedulable},
		"a workload that is polled":        {[]func(*Snapshot){func(s *Snapshot) { s.Target.Polled = true }}, nil, 0, 30 * time.Second, v1beta1.PersistentPodStateRecording},
		"on its way out nothing is done":   {[]func(*Snapshot){waits(60), fallback("Delete"), forgotten, func(s *Snapshot) { s.State.DeletionTimestamp = &metav1.Time{} }}, nil, 0, 0, ""},
		"a node that the cache lacks":      {[]func(*Snapshot){func(s *Snapshot) { s.Pods = []*corev1.Pod{onNode("n7")} }}, nil, 0, nodeDelay, v1beta1.PersistentPodStateRecording},
		"a record that will be too old":    {[]func(*Snapshot){func(s *Snapshot) { s.State.Spec.MaxAgeSeconds = new(int32(90)) }}, nil, 0, 90 * time.Second, v1beta1.PersistentPodStateRecording},
		"a Pod that others bind to a node": {[]func(*Snapshot){func(s *Snapshot) { p := stuck(600); p.Annotations = nil; s.Pods = []*corev1.Pod{p} }}, nil, 0, 0, v1beta1.PersistentPodStateRecording},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := snapshot()
			for _, with := range tc.with {
				with(&s)
			}
			decided := Plan(s)
			var writes []string
			for _, a := range decided.Actions() {
				writes = append(writes, string(a.Verb)+" "+a.Object().GetName())
			}
			if diff := cmp.Diff(tc.writes, writes); diff != "" || len(decided.Holds) != tc.holds || decided.Recheck != tc.recheck {
				t.Errorf("(-want +got):\n%s%s", diff, decided)
			}
			ready := meta.FindStatusCondition(Status(s, decided, apply.Outcome{}).Conditions, v1beta1.PersistentPodStateReady)
			if ready == nil && tc.reason != "" || ready != nil && ready.Reason != tc.reason {
				t.Errorf("the condition is %+v, want %s", ready, tc.reason)
			}
		})
	}
}

func onNode(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0"}, Spec: corev1.PodSpec{NodeName: name}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

func TestPlanGenerated(t *testing.T) {
	kind := appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	asks := func(value string) map[string]string {
		return map[string]string{keys.GeneratePodState: value, keys.PreferredTopology: host}
	}
	generated := func(uid, topology string) *v1beta1.PersistentPodState {
		state := &v1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
		state.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", Controller: new(true)}}
		state.OwnerReferences[0].UID = "web-uid"
		if uid != "" {
			state.OwnerReferences[0].UID = "uid-of-before"
		}
		annotations := asks("true")
		annotations[keys.PreferredTopology] = topology
		podstate.Generate(annotations, v1beta1.PersistentPodStateTarget{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}, &state.Spec)
		return state
	}
	byHand := generated("", host)
	byHand.OwnerReferences = nil
	tuned := generated("", host)
	tuned.Spec.MaxAgeSeconds = new(int32(5))
	going := generated("", host)
	going.DeletionTimestamp = &metav1.Time{}
	cases := map[string]struct {
		annotations map[string]string
		state       *v1beta1.PersistentPodState
		want        string
		held        bool
	}{
		"asked for":                      {annotations: asks("true"), want: "create web"},
		"there already":                  {annotations: asks("true"), state: generated("", host)},
		"tuned by a user":                {annotations: asks("true"), state: tuned},
		"other keys":                     {annotations: asks("true"), state: generated("", "zone"), want: "update web"},
		"no longer asked for":            {state: generated("", host), want: "delete web"},
		"not wanted":                     {annotations: asks("false"), state: generated("", host), want: "delete web"},
		"made by hand, and asked for":    {annotations: asks("true"), state: byHand, held: true},
		"made by hand, and not wanted":   {annotations: asks("false"), state: byHand, held: true},
		"made by hand, and nobody asks":  {state: byHand},
		"that of one before of the name": {annotations: asks("true"), state: generated("other", host)},
		"on its way out":                 {annotations: asks("true"), state: going},
		"nobody asks":                    {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "web-uid", Annotations: tc.annotations}}
			decided := PlanGenerated(Wish{Workload: set, Kind: kind, State: tc.state})
			var writes []string
			for _, a := range decided.Actions() {
				writes = append(writes, string(a.Verb)+" "+a.Object().GetName())
				if a.Verb == plan.Create && !metav1.IsControlledBy(a.After, set) {
					t.Error("it is not the workload's")
				}
			}
			if got := strings.Join(writes, ", "); got != tc.want || (len(decided.Holds) > 0) != tc.held {
				t.Errorf("%q, want %q, held %t:\n%s", got, tc.want, tc.held, decided)
			}
		})
	}
}

// TestCloneSets: the Pods of one come back if it gives instance ids again, and what says so is heard of.
func TestCloneSets(t *testing.T) {
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid"}}
	claims := []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	places := podstate.Places{Known: true, Instance: true, Workload: "web", Replicas: 1}
	texts := map[string]bool{}
	for name, tc := range map[string]struct {
		change func(*v1beta1.CloneSet)
		want   Target
	}{
		"claims that go with their Pod": {
			func(s *v1beta1.CloneSet) { s.Spec.VolumeClaimTemplates = claims }, Target{UID: "uid", Places: places, Renames: true},
		},
		"claims that are taken over": {
			func(s *v1beta1.CloneSet) {
				s.Spec.VolumeClaimTemplates, s.Spec.ScaleStrategy.EnablePVCReuse = claims, true
			}, Target{UID: "uid", Places: places},
		},
		"three Pods, without claims": {
			func(s *v1beta1.CloneSet) { s.Spec.Replicas, s.Spec.ScaleStrategy.EnablePVCReuse = new(int32(3)), true },
			Target{UID: "uid", Renames: true, Places: podstate.Places{Known: true, Instance: true, Workload: "web", Replicas: 3}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			one := set.DeepCopy()
			tc.change(one)
			if got := cloneSet(one); !reflect.DeepEqual(&tc.want, got) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			texts[strings.Join(placesText(one), " ")] = true
		})
	}
	if len(texts) != 3 || kindOf(set).Kind != "CloneSet" {
		t.Errorf("what changes is told as %v of %s", texts, kindOf(set))
	}
}
