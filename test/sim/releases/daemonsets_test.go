package releases

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/ondelete"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/native"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestPromisesOverDaemonSets is the same for a DaemonSet of Kubernetes, whose Pods are deleted as far as the steps say.
func TestPromisesOverDaemonSets(t *testing.T) { daemonSuite(nil).Hold(t) }

// TestRunsOfDaemonSetsRepeat checks that a failure could be repeated.
func TestRunsOfDaemonSetsRepeat(t *testing.T) { daemonSuite(nil).Repeat(t) }

// TestMistakesWithDaemonSetsShow makes mistakes on purpose: the checks must see each of them.
func TestMistakesWithDaemonSetsShow(t *testing.T) {
	ofSet := func(mistake func(*appsv1.DaemonSet)) func(*plan.Action) {
		return func(a *plan.Action) {
			if set, is := a.After.(*appsv1.DaemonSet); is {
				mistake(set)
			}
		}
	}
	for name, tc := range map[string]struct {
		wrong func(*plan.Action)
		want  string
	}{
		"a batch is all Pods": {wrong: ofSet(func(set *appsv1.DaemonSet) {
			if control, _, err := ondelete.ParseControl(set.Annotations[keys.DaemonSetControl]); err == nil {
				control.Partition = "0"
				set.Annotations[keys.DaemonSetControl] = control.String()
			}
		}), want: ruleSteps},
		"it stays frozen": {wrong: ofSet(func(set *appsv1.DaemonSet) {
			set.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
		}), want: "at rest"},
		"its annotation stays": {wrong: ofSet(func(set *appsv1.DaemonSet) {
			if set.Annotations == nil {
				set.Annotations = map[string]string{}
			}
			set.Annotations[keys.DaemonSetControl] = "{}"
		}), want: "at rest"},
		"one more may be unavailable": {wrong: ofSet(func(set *appsv1.DaemonSet) {
			set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(5))
		}), want: ruleStrategy},
		"a DaemonSet whose Rollout is gone is left as it is": {wrong: func(a *plan.Action) {
			if set, is := a.After.(*appsv1.DaemonSet); is && a.Event == "OrphanedRelease" {
				before := a.Before.(*appsv1.DaemonSet)
				set.Labels, set.Annotations, set.Spec = before.Labels, before.Annotations, before.Spec
			}
		}, want: "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			daemonSuite(tc.wrong).Break(t, tc.want)
		})
	}
}

// daemonSuite is a Rollout of a DaemonSet, with a mistake in what is written.
func daemonSuite(wrong func(*plan.Action)) promises.Suite {
	if wrong == nil {
		wrong = func(*plan.Action) {}
	}
	return promises.Suite{
		Scheme: promises.Scheme(v1beta1.AddToScheme), Watched: watched(&appsv1.ControllerRevision{}),
		Populate: func(w *promises.World) promises.Scenario {
			user := promises.User{Cluster: w.Cluster, Rand: w.Rand}
			s := &daemons{Daemons: native.Daemons{User: user}, calm: w.Seed%2 == 0, people: people{
				User: user, ref: v1beta1.WorkloadReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "web"},
				style: v1beta1.RollingStylePartition,
			}}
			w.Rig.Sound = s.calm
			s.populate()
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					c.Executor.Writer = s.Beside(c.Executor.Writer)
					return start(c, wrong)
				},
				Act: s.act, Relent: s.relent, Others: []func() bool{s.Step, s.people.approveLate},
				Check: s.check, Converged: s.converged,
			}
		},
	}
}

// daemons is users with a DaemonSet and a Rollout, beside its own controller.
type daemons struct {
	native.Daemons
	people people
	// calm means that nodes neither come nor go, and that Pods do not fail of themselves.
	calm bool
	// manifest is the DaemonSet as the repository of its users has it.
	manifest appsv1.DaemonSetSpec
}

func (s *daemons) populate() {
	s.Nodes = 2 + s.Rand.Intn(7)
	unavailable := s.Amount(3)
	if unavailable.IntValue() == 0 {
		unavailable = ptr.To(intstr.FromInt32(1))
	}
	s.manifest = appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
		},
		UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
			Type:          appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: unavailable},
		},
	}
	s.people.create(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: *s.manifest.DeepCopy()})
	kubelet := simulate.NewKubelet(s.Cluster)
	for busy := true; busy; {
		busy = s.Step()
		for _, p := range s.Pods() {
			busy = kubelet.Step(p) || busy
		}
	}
	s.people.create(s.people.newRollout())
}

// act is what users do, their tools, and the controller of DaemonSets.
func (s *daemons) act() {
	switch n := s.Rand.Intn(100); {
	case n < 50:
		s.Step()
	case n < 65:
		s.apply()
	case n < 72:
		s.manifest.Template.Spec.Containers[0].Image = s.Image()
		s.apply()
	case n < 75:
		if !s.calm {
			s.Nodes = 1 + s.Rand.Intn(9)
		}
	default:
		s.people.release()
	}
}

func (s *daemons) relent() {
	s.apply()
	s.people.relent()
}

// apply writes the manifest: in place of the whole object, or those of its fields that it names, of which the type may be one.
func (s *daemons) apply() {
	old := s.DaemonSet()
	now := old.DeepCopy()
	kind := now.Spec.UpdateStrategy.Type
	now.Spec = *s.manifest.DeepCopy()
	switch s.Rand.Intn(3) {
	case 0:
		now.Labels, now.Annotations = nil, nil
	case 1:
		now.Spec.UpdateStrategy.Type = kind
	}
	o := steer.Objects{Workload: now, Pods: s.Pods(), Revisions: s.Revisions(), Now: s.Cluster.Now()}
	stored := s.people.admit(old, now, o).(*appsv1.DaemonSet)
	simulate.Update(s.Cluster, promises.UserActor, old, func(set *appsv1.DaemonSet) {
		set.Labels, set.Annotations, set.Spec = stored.Labels, stored.Annotations, stored.Spec
	})
}

// daemonLedger is the cluster up to a change.
type daemonLedger struct {
	ledger
	set   *appsv1.DaemonSet
	nodes int32
	// hash is the revision of the present template, empty until it is stored; revisions are by name.
	revisions map[string]*appsv1.ControllerRevision
}

// check returns the promises that were broken in a history.
func (s *daemons) check(history []simulate.Change) []invariant.Violation {
	l := &daemonLedger{
		ledger: ledger{calm: s.calm, batches: map[types.UID]types.UID{}, pods: map[types.UID]*corev1.Pod{}}, nodes: int32(s.Nodes),
		revisions: map[string]*appsv1.ControllerRevision{},
	}
	for _, c := range history {
		switch after := c.After.(type) {
		case *v1beta1.Rollout:
			l.judgeRollout(after)
			l.inherit()
		case *v1beta1.BatchRelease:
			if by := metav1.GetControllerOf(after); by != nil {
				l.batches[after.UID] = by.UID
			}
		case *appsv1.ControllerRevision:
			l.revisions[after.Name] = after
		case *appsv1.DaemonSet:
			if l.set != nil && c.Pass != nil && !sameButType(l.set.Spec, after.Spec) {
				l.breaks(c, ruleStrategy, "%+v", after.Spec.UpdateStrategy)
			}
			l.set = after
			l.inherit()
		case *corev1.Pod:
			l.judgePod(c, after)
			l.pods[after.UID] = after
		case nil:
			delete(l.pods, c.Before.GetUID())
		}
	}
	return l.broken
}

func sameButType(a, b appsv1.DaemonSetSpec) bool {
	a.UpdateStrategy.Type, b.UpdateStrategy.Type = "", ""
	return equality.Semantic.DeepEqual(a, b)
}

// inherit notes how many Pods another Rollout has let through.
func (l *daemonLedger) inherit() {
	if l.most == nil || l.set == nil {
		return
	}
	_, keep, err := ondelete.ParseControl(l.set.Annotations[keys.DaemonSetControl])
	by, claimed := steer.ClaimOf(l.set)
	if err != nil || claimed && l.batches[by.UID] == l.rollout.UID {
		return
	}
	if n := l.nodes - keep; n > l.planned() {
		l.most = ptr.To(intstr.FromInt32(n))
	}
}

// planned returns how many Pods may be updated.
func (l *daemonLedger) planned() int32 {
	if l.most == nil {
		return l.nodes
	}
	n, err := release.Planned(l.most, l.nodes)
	if err != nil {
		panic(err)
	}
	return n
}

// judgePod judges the deletion of a Pod by our controller, where nothing else goes wrong: no more are updated than the steps say, and as
// many stay ready as have to.
func (l *daemonLedger) judgePod(c simulate.Change, after *corev1.Pod) {
	before, existed := c.Before.(*corev1.Pod)
	if !l.calm || c.Pass == nil || c.Late || !existed || before.DeletionTimestamp != nil || after.DeletionTimestamp == nil {
		return
	}
	update := steer.DaemonSetRevision(steer.Objects{Workload: l.set, Revisions: values(l.revisions)})
	if update == nil {
		l.breaks(c, ruleSteps, "a Pod is deleted before anybody knows for which revision")
		return
	}
	hash := update.Labels[appsv1.ControllerRevisionHashLabelKey]
	old, ready := int32(-1), int32(-1) // without this one
	for _, p := range l.pods {
		if p.DeletionTimestamp == nil && p.Labels[appsv1.ControllerRevisionHashLabelKey] != hash {
			old++
		}
		if p.DeletionTimestamp == nil && pod.IsReady(p) {
			ready++
		}
	}
	if before.Labels[appsv1.ControllerRevisionHashLabelKey] == hash {
		l.breaks(c, ruleSteps, "a Pod is deleted that is updated")
	}
	if may := l.planned(); l.most != nil {
		if l.rollout.Status.CanaryStatus.CanaryRevision != update.Name { // of another template, the first step at most
			l.most = l.rollout.Spec.Strategy.Canary.Steps[0].Replicas
			may = min(may, l.planned())
		}
		if l.nodes-old > may {
			l.breaks(c, ruleSteps, "%d Pods are to be updated at step %d, and %d may be", l.nodes-old, l.rollout.Status.CurrentStepIndex, may)
		}
	}
	most, err := ondelete.MaxUnavailable(l.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable, l.nodes)
	if err != nil {
		panic(err)
	}
	if pod.IsReady(before) && ready < l.nodes-most {
		l.breaks(c, ruleAvailable, "%d of %d are left", ready, l.nodes-most)
	}
}

func values(of map[string]*appsv1.ControllerRevision) (out []*appsv1.ControllerRevision) {
	for _, r := range of {
		out = append(out, r)
	}
	return out
}

// converged returns what is wrong, now that the cluster is at rest.
func (s *daemons) converged() (problems []string) {
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("at rest, "+format, args...))
	}
	set := s.DaemonSet()
	if !equality.Semantic.DeepEqual(set.Spec, s.manifest) {
		wrong("the spec is not the manifest: %+v", set.Spec.UpdateStrategy)
	}
	for key := range set.Labels {
		if key != keys.WorkloadType {
			wrong("the DaemonSet has label %s", key)
		}
	}
	for key := range set.Annotations {
		wrong("the DaemonSet has annotation %s", key)
	}
	for _, p := range s.Pods() {
		if p.Spec.Containers[0].Image != s.manifest.Template.Spec.Containers[0].Image {
			wrong("Pod %s runs %s", p.Name, p.Spec.Containers[0].Image)
		}
	}
	if n := len(s.Pods()); n != s.Nodes {
		wrong("%d Pods are on %d nodes", n, s.Nodes)
	}
	if n := len(s.Cluster.Of(batchKind)); n > 0 {
		wrong("%d BatchReleases are there", n)
	}
	if r := s.people.rollout(); r != nil && r.Status.Phase != v1beta1.RolloutPhaseHealthy {
		wrong("the Rollout is %+v", r.Status)
	}
	return problems
}
