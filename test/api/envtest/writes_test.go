package envtest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Labels, annotations and finalizers of a Pod are stored along with its status, and its spec is not, in one write.
func TestAPodsStatusTakesItsMetadataAlong(t *testing.T) {
	onBoth(t, statusTakesMetadataAlong)
}

func statusTakesMetadataAlong(t *testing.T, s *server) {
	before := s.created(t, s.pod("status"))
	after := before.DeepCopy()
	after.Labels["state"] = "Updating"
	after.Annotations = map[string]string{"note": "x"}
	after.Finalizers = []string{"example.com/held"}
	after.Spec.Containers[0].Image = "app:v2"
	after.Status.Conditions = append(after.Status.Conditions, corev1.PodCondition{Type: "example.com/Gate", Status: corev1.ConditionTrue})
	result := s.one(t, plan.Action{Verb: plan.UpdateStatus, Before: before, After: after})
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	got := before.DeepCopy()
	s.read(t, got)
	type facts struct {
		Labels, Annotations map[string]string
		Finalizers          []string
		Image               string
		Conditions, Writes  int
	}
	want := facts{after.Labels, after.Annotations, after.Finalizers, "app:v1", 1, 1}
	is := facts{got.Labels, got.Annotations, got.Finalizers, got.Spec.Containers[0].Image, len(got.Status.Conditions), s.writes}
	if diff := cmp.Diff(want, is); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.ResourceVersion != result.Object.GetResourceVersion() {
		t.Errorf("stored version %s, answered version %s", got.ResourceVersion, result.Object.GetResourceVersion())
	}
}

// A patch with an older version, or with the identity of another object, is refused.
func TestPreconditions(t *testing.T) { onBoth(t, preconditions) }

func preconditions(t *testing.T, s *server) {
	first := s.created(t, s.pod("conditions"))
	second := first.DeepCopy()
	second.Labels["step"] = "2"
	if result := s.one(t, plan.Action{Verb: plan.Update, Before: first, After: second}); result.Err != nil {
		t.Fatal(result.Err)
	}
	third := first.DeepCopy()
	third.Labels["step"] = "3"
	stranger := third.DeepCopy()
	stranger.UID = "00000000-0000-0000-0000-000000000000"
	strangersNext := stranger.DeepCopy()
	strangersNext.Labels["step"] = "4"
	strangersStatus := stranger.DeepCopy()
	strangersStatus.Status.Phase = corev1.PodRunning
	for name, tc := range map[string]struct {
		action plan.Action
		want   bool
	}{
		"an update from an older version":        {plan.Action{Verb: plan.Update, Before: first, After: third}, true},
		"a deletion of an older version":         {plan.Action{Verb: plan.Delete, Before: first}, true},
		"an update of another object":            {plan.Action{Verb: plan.Update, Before: stranger, After: strangersNext, AnyVersion: true}, true},
		"a status of another object":             {plan.Action{Verb: plan.UpdateStatus, Before: stranger, After: strangersStatus, AnyVersion: true}, true},
		"a deletion of another object":           {plan.Action{Verb: plan.Delete, Before: stranger, AnyVersion: true}, true},
		"an update that any version is good for": {plan.Action{Verb: plan.Update, Before: first, After: third, AnyVersion: true}, false},
	} {
		if err := s.one(t, tc.action).Err; apierrors.IsConflict(err) != tc.want || (err != nil) != tc.want {
			t.Errorf("%s: got error %v, want a conflict: %v", name, err, tc.want)
		}
	}
}

// A write that holds only while a label is as it was meets no conflict with what others write to the Pod, and none of it happens once the label has
// changed or the Pod is another one.
func TestAWriteThatHoldsWhileALabelDoes(t *testing.T) { onBoth(t, whileALabel) }

func whileALabel(t *testing.T, s *server) {
	p := s.pod("while")
	p.Labels["x.io/state"], p.Annotations = "preparing", map[string]string{"x.io/since": "1"}
	p = s.created(t, p)
	scheduled := p.DeepCopy()
	scheduled.Status.Conditions = append(scheduled.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	seen := s.one(t, plan.Action{Verb: plan.UpdateStatus, Before: p, After: scheduled}).Object.(*corev1.Pod)
	started := seen.DeepCopy()
	started.Status.Phase = corev1.PodRunning
	if err := s.one(t, plan.Action{Verb: plan.UpdateStatus, Before: seen, After: started}).Err; err != nil {
		t.Fatal(err)
	}
	normal := seen.DeepCopy()
	normal.Labels["x.io/state"], normal.Annotations["x.io/since"] = "normal", "2"
	normal.Status.Conditions = append(normal.Status.Conditions, corev1.PodCondition{Type: "x.io/Gate", Status: corev1.ConditionTrue})
	write := plan.Action{Verb: plan.UpdateStatus, Before: seen, After: normal, While: "x.io/state"}
	other := write
	stranger := seen.DeepCopy()
	stranger.UID = "00000000-0000-0000-0000-000000000000"
	other.Before = stranger
	if err := s.one(t, other).Err; !apierrors.IsConflict(err) {
		t.Errorf("a write to another Pod: got error %v, want a conflict", err)
	}
	if err := s.one(t, write).Err; err != nil {
		t.Fatalf("a write from an older version: got error %v, want none", err)
	}
	if err := s.one(t, write).Err; !apierrors.IsConflict(err) {
		t.Errorf("the same write again: got error %v, want a conflict", err)
	}
	got := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	s.read(t, got)
	types := []corev1.PodConditionType{}
	for _, c := range got.Status.Conditions {
		types = append(types, c.Type)
	}
	want := []any{"normal", "2", corev1.PodRunning, []corev1.PodConditionType{corev1.PodScheduled, "x.io/Gate"}}
	if diff := cmp.Diff(want, []any{got.Labels["x.io/state"], got.Annotations["x.io/since"], got.Status.Phase, types}); diff != "" {
		t.Errorf("the Pod (-want +got):\n%s", diff)
	}
}

// The answer to a deletion tells its version, both of an object that is gone at once and of one that is given time, and the cache gets there.
func TestACacheCatchesUpWithOurOwnWrites(t *testing.T) {
	s := connect(t)
	for i := range 5 {
		s.created(t, s.pod(fmt.Sprintf("seen-%d", i)))
		s.caughtUp(t)
		var list corev1.PodList
		if err := s.cache.List(t.Context(), &list, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, p := range list.Items {
			if metav1.IsControlledBy(&p, s.owner) {
				found++
			}
		}
		if found != i+1 {
			t.Fatalf("after %d creates the cache shows %d Pods", i+1, found)
		}
	}
	bound := s.pod("bound")
	bound.Spec.NodeName = "somewhere"
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		gone bool
	}{
		"a Pod without a node is gone at once": {s.pod("unbound"), true},
		"a Pod with a node is given time":      {bound, false},
	} {
		p := s.created(t, tc.pod)
		s.caughtUp(t)
		if result := s.one(t, plan.Action{Verb: plan.Delete, Before: p}); result.Err != nil {
			t.Fatal(result.Err)
		}
		s.caughtUp(t)
		cached := &corev1.Pod{}
		err := s.cache.Get(t.Context(), client.ObjectKeyFromObject(p), cached)
		if gone := apierrors.IsNotFound(err); gone != tc.gone || (!gone && cached.DeletionTimestamp == nil) {
			t.Errorf("%s: the cache says %v, deletion timestamp %v", name, err, cached.DeletionTimestamp)
		}
	}
}

// Deleting a kind whose deletion is answered without a version works too.
func TestDeletionWithoutAnObjectInTheAnswer(t *testing.T) {
	s := connect(t)
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1"},
		Data:       runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}, Revision: 1,
	}
	result := s.one(t, plan.Action{Verb: plan.Create, After: revision})
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	if result := s.one(t, plan.Action{Verb: plan.Delete, Before: result.Object}); result.Err != nil {
		t.Fatal(result.Err)
	}
	if err := shared.Client.Get(t.Context(), client.ObjectKeyFromObject(revision), revision); !apierrors.IsNotFound(err) {
		t.Errorf("after the deletion: %v", err)
	}
}

// A status goes to the object that it is about, or nowhere; a list in it that shrinks is stored as it is.
func TestStatusOfACustomResource(t *testing.T) { onBoth(t, statusOfACustomResource) }

func statusOfACustomResource(t *testing.T, s *server) {
	statuses := apply.NewStatuses(s.Executor, apply.StatusPolicy[*v1beta1.CloneSet, v1beta1.CloneSetStatus]{
		Of: func(set *v1beta1.CloneSet) *v1beta1.CloneSetStatus { return &set.Status },
	})
	replicas := int32(1)
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "status"}}
	set.Spec.Replicas = &replicas
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
	}
	fresh := set.DeepCopy()
	write := func(before *v1beta1.CloneSet, change func(*v1beta1.CloneSetStatus)) *v1beta1.CloneSet {
		t.Helper()
		after := before.DeepCopy()
		change(&after.Status)
		if wait, err := statuses.Write(t.Context(), before, after.Status); err != nil || wait != 0 {
			t.Fatalf("wait %s, error %v", wait, err)
		}
		stored := before.DeepCopy()
		s.read(t, stored)
		return stored
	}
	if err := s.counting.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	first := write(set, func(s *v1beta1.CloneSetStatus) {
		s.Replicas, s.CurrentRevision = 3, "web-1"
		s.Conditions = []v1beta1.CloneSetCondition{
			{Type: v1beta1.CloneSetConditionFailedScale, Status: corev1.ConditionTrue},
			{Type: v1beta1.CloneSetConditionFailedUpdate, Status: corev1.ConditionTrue},
		}
	})
	second := write(first, func(s *v1beta1.CloneSetStatus) { s.Conditions, s.CurrentRevision = s.Conditions[1:], "" })
	if s := second.Status; s.Replicas != 3 || s.CurrentRevision != "" || len(s.Conditions) != 1 {
		t.Errorf("stored: %d replicas, current revision %q, %d conditions", s.Replicas, s.CurrentRevision, len(s.Conditions))
	}
	if _, err := s.counting.Delete(t.Context(), second, metav1.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.counting.Create(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	if third := write(second, func(s *v1beta1.CloneSetStatus) { s.Replicas = 9 }); third.Status.Replicas != 0 {
		t.Errorf("the status of the object before is on its successor: %d replicas", third.Status.Replicas)
	}
}

// An object of others that has the name of a new one is never taken for our own.
func TestANameThatOthersHave(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		revision := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "taken"}, Data: runtime.RawExtension{Raw: []byte(`{"spec":{}}`)},
		}
		ours := revision.DeepCopy()
		ours.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
		if err := s.counting.Create(t.Context(), revision); err != nil {
			t.Fatal(err)
		}
		if result := s.one(t, plan.Action{Verb: plan.Create, After: ours}); !apierrors.IsAlreadyExists(result.Err) {
			t.Errorf("got error %v", result.Err)
		}
		if diff := cmp.Diff([]string{"taken"}, s.TakenNames(s.owner.GetUID())); diff != "" {
			t.Errorf("names remembered (-want +got):\n%s", diff)
		}
	})
}
