package releases

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/controller/cloneset"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

var cloneSetKind = appsv1beta1.GroupVersion.WithKind("CloneSet")

// TestPromisesOverBlueGreenSets is the same for a CloneSet, beside its own controller.
func TestPromisesOverBlueGreenSets(t *testing.T) { blueGreenSetSuite(nil).Hold(t) }

// TestMistakesWithBlueGreenSetsShow makes mistakes on purpose: the checks must see each of them.
func TestMistakesWithBlueGreenSetsShow(t *testing.T) {
	ofSet := func(begun bool, mistake func(*appsv1beta1.CloneSet)) func(*plan.Action) {
		return func(a *plan.Action) {
			set, is := a.After.(*appsv1beta1.CloneSet)
			if is && a.Verb == plan.Update && (set.Spec.MinReadySeconds == budget.BesideSeconds) == begun {
				mistake(set)
			}
		}
	}
	for name, tc := range map[string]struct {
		wrong func(*plan.Action)
		want  string
	}{
		"a batch is all Pods": {ofSet(true, func(set *appsv1beta1.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromString("100%"))
		}), ruleSteps},
		"new Pods become available": {ofSet(true, func(set *appsv1beta1.CloneSet) { set.Spec.MinReadySeconds = 1 }), "at rest"},
		"it stays frozen": {ofSet(false, func(set *appsv1beta1.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateCloneSetStrategy{Partition: ptr.To(intstr.FromString("100%"))}
		}), "at rest"},
		"Pods of both versions stay for ever": {ofSet(false, func(set *appsv1beta1.CloneSet) { set.Spec.MinReadySeconds = budget.BesideSeconds }), "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blueGreenSetSuite(tc.wrong).Break(t, tc.want)
		})
	}
}

// blueGreenSetSuite is a Rollout of a CloneSet in blueGreen style, with a mistake in what is written.
func blueGreenSetSuite(wrong func(*plan.Action)) promises.Suite {
	if wrong == nil {
		wrong = func(*plan.Action) {}
	}
	return promises.Suite{
		Scheme: promises.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme),
		Watched: watched(&corev1.Service{}, &networkingv1.Ingress{}, emptyRoute(), &corev1.ConfigMap{}, &v1alpha1.TrafficRouting{},
			&autoscalingv2.HorizontalPodAutoscaler{}, &appsv1.ControllerRevision{}, &corev1.PersistentVolumeClaim{}),
		Populate: func(w *promises.World) promises.Scenario {
			user := promises.User{Cluster: w.Cluster, Rand: w.Rand}
			s := &blueGreenSets{User: user, calm: w.Seed%2 == 0, people: people{
				User: user, ref: v1beta1.WorkloadReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web"},
				style: v1beta1.RollingStyleBlueGreen, leads: w.Seed%4 < 2, keepsFinalizer: true,
			}}
			w.Rig.Sound = s.calm
			s.populate()
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					return append(startRouted(c, wrong).(all), promises.Start(cloneset.Kind(cloneset.Options{}), c.Runtime(), c))
				},
				Act: s.act, Relent: s.relent, Others: []func() bool{s.people.approveLate, s.rollBack},
				Check: s.check, Converged: s.converged,
			}
		},
	}
}

// blueGreenSets is users with a CloneSet, its autoscaler and a Rollout.
type blueGreenSets struct {
	promises.User
	people people
	calm   bool
	// manifest is the CloneSet as the repository of its users has it.
	manifest appsv1beta1.CloneSetSpec
}

func (s *blueGreenSets) populate() {
	s.manifest.Replicas = ptr.To(int32(2 + s.Rand.Intn(5)))
	s.manifest.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	s.manifest.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
	}
	s.manifest.UpdateStrategy.Type = appsv1beta1.RollingUpdateCloneSetStrategyType
	if s.Chance(70) {
		s.manifest.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateCloneSetStrategy{
			MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(int32(s.Rand.Intn(2)))),
		}
	}
	s.people.create(&appsv1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: *s.manifest.DeepCopy()})
	s.people.create(s.people.newRollout())
	s.people.populate()
	s.people.create(s.autoscaler())
}

func (s *blueGreenSets) autoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	a := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	a.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}
	a.Spec.MaxReplicas = 9
	return a
}

func (s *blueGreenSets) set() *appsv1beta1.CloneSet {
	set, _ := s.Cluster.Get(simulate.Key{Kind: cloneSetKind, Namespace: "default", Name: "web"}).(*appsv1beta1.CloneSet)
	return set
}

func (s *blueGreenSets) act() {
	switch n := s.Rand.Intn(100); {
	case n < 35: // nothing: the controllers go on
	case n < 55:
		s.apply()
	case n < 65:
		s.manifest.Template.Spec.Containers[0].Image = s.Image()
		s.apply()
	case n < 70 && !s.calm:
		s.manifest.Replicas = ptr.To(int32(1 + s.Rand.Intn(6)))
		s.apply()
	default:
		s.people.release()
	}
}

func (s *blueGreenSets) relent() {
	s.apply()
	s.people.relent()
}

// apply writes the manifest: in place of the whole object, or those of its fields that it names.
func (s *blueGreenSets) apply() {
	old := s.set()
	now := old.DeepCopy()
	now.Spec = *s.manifest.DeepCopy()
	if s.Chance(40) {
		now.Labels, now.Annotations = nil, nil
	}
	o := steer.Objects{Workload: now, Pods: s.Pods(), Now: s.Cluster.Now()}
	stored := s.people.admit(old, now, o).(*appsv1beta1.CloneSet)
	simulate.Update(s.Cluster, promises.UserActor, old, func(set *appsv1beta1.CloneSet) {
		set.Labels, set.Annotations, set.Spec = stored.Labels, stored.Annotations, stored.Spec
	})
}

// rollBack puts the old template back where a third one waits.
func (s *blueGreenSets) rollBack() bool {
	r := s.people.rollout()
	if r == nil || r.Status.Phase != v1beta1.RolloutPhaseProgressing || r.Status.BlueGreenStatus == nil {
		return false
	}
	for _, c := range r.Status.Conditions {
		if c.Type != v1beta1.ConditionProgressing || c.Reason != v1beta1.ReasonThirdVersion {
			continue
		}
		for _, object := range s.Cluster.Of(appsv1.SchemeGroupVersion.WithKind("ControllerRevision")) {
			if !revision.IsOf(r.Status.BlueGreenStatus.StableRevision, object.GetName()) {
				continue
			}
			old, err := revision.Template(object.(*appsv1.ControllerRevision))
			if err != nil || old.Spec.Containers[0].Image == s.manifest.Template.Spec.Containers[0].Image {
				return false
			}
			s.manifest.Template.Spec.Containers[0].Image = old.Spec.Containers[0].Image
			s.apply()
			return true
		}
	}
	return false
}

// setLedger is the cluster up to a change.
type setLedger struct {
	ledger
	roads
	set *appsv1beta1.CloneSet
}

// check returns the promises that were broken in a history.
func (s *blueGreenSets) check(history []simulate.Change) []invariant.Violation {
	l := &setLedger{ledger: ledger{calm: s.calm, batches: map[types.UID]types.UID{}, pods: map[types.UID]*corev1.Pod{}}}
	for _, c := range history {
		switch after := c.After.(type) {
		case nil:
			delete(l.pods, c.Before.GetUID())
		case *v1beta1.Rollout:
			l.judgeRollout(after)
		case *appsv1beta1.CloneSet:
			l.set = after
		case *corev1.Pod:
			l.judgePod(c, after)
			l.pods[after.UID] = after
		}
		l.roads.see(c)
		if text := l.roads.broken(l.pods); text != "" && s.people.leads && l.calm && l.isUnderWay() {
			l.breaks(c, ruleLeads, "%s", text)
		}
	}
	return l.ledger.broken
}

// isUnderWay tells whether a release has changed the strategy of the CloneSet, and the webhook guards it.
func (l *setLedger) isUnderWay() bool {
	return l.set != nil && l.rollout != nil && l.set.Annotations[keys.InProgressing] != "" &&
		l.set.Annotations[keys.OriginalDeploymentStrategy] != "" && l.set.Spec.MinReadySeconds == budget.BesideSeconds && steer.Intercepts(l.rollout)
}

// judgePod judges what the controller of CloneSets does while a release is under way.
func (l *setLedger) judgePod(c simulate.Change, after *corev1.Pod) {
	at := (*v1beta1.BlueGreenStatus)(nil)
	if l.rollout != nil {
		at = l.rollout.Status.BlueGreenStatus
	}
	if !l.calm || c.Pass == nil || c.Late || at == nil || !l.isUnderWay() {
		return
	}
	isAt := func(p *corev1.Pod, name string) bool {
		return name != "" && revision.IsOf(p.Labels[appsv1.ControllerRevisionHashLabelKey], name)
	}
	before, existed := c.Before.(*corev1.Pod)
	switch {
	case existed && before.DeletionTimestamp == nil && after.DeletionTimestamp != nil:
		l.breaks(c, ruleStay, "it is deleted")
	case existed:
	case !isAt(after, at.StableRevision) && !isAt(after, at.UpdatedRevision):
		l.breaks(c, ruleThird, "it is made")
	case isAt(after, at.UpdatedRevision) && at.UpdatedRevision != at.StableRevision && l.most != nil:
		updated := int32(1)
		for _, p := range l.pods {
			if p.DeletionTimestamp == nil && isAt(p, at.UpdatedRevision) {
				updated++
			}
		}
		if n, err := release.Planned(l.most, *l.set.Spec.Replicas); err == nil && updated > n {
			l.breaks(c, ruleSteps, "%d Pods are updated at step %d, and %d may be", updated, at.CurrentStepIndex, n)
		}
	}
}

// converged returns what is wrong, now that the cluster is at rest.
func (s *blueGreenSets) converged() (problems []string) {
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("at rest, "+format, args...))
	}
	set := s.set()
	if !equality.Semantic.DeepEqual(set.Spec, s.manifest) {
		wrong("the spec is not the manifest: %d, %+v", set.Spec.MinReadySeconds, set.Spec.UpdateStrategy.RollingUpdate)
	}
	for key := range set.Labels {
		if key != keys.WorkloadType {
			wrong("the CloneSet has label %s", key)
		}
	}
	for key := range set.Annotations {
		wrong("the CloneSet has annotation %s", key)
	}
	n := 0
	for _, p := range s.Pods() {
		if !pod.IsActive(p) {
			continue
		}
		n++
		if p.Spec.Containers[0].Image != s.manifest.Template.Spec.Containers[0].Image {
			wrong("Pod %s runs %s", p.Name, p.Spec.Containers[0].Image)
		}
	}
	if n != int(*s.manifest.Replicas) {
		wrong("%d Pods are there, want %d", n, *s.manifest.Replicas)
	}
	for _, a := range s.Cluster.Of(autoscalerKind) {
		if name := a.(*autoscalingv2.HorizontalPodAutoscaler).Spec.ScaleTargetRef.Name; name != "web" {
			wrong("the autoscaler scales %s", name)
		}
	}
	if n := len(s.Cluster.Of(batchKind)); n > 0 {
		wrong("%d BatchReleases are there", n)
	}
	if r := s.people.rollout(); r != nil && r.Status.Phase != v1beta1.RolloutPhaseHealthy {
		wrong("the Rollout is %+v", r.Status)
	}
	return append(problems, s.people.untouched()...)
}
