package rollout

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/controller/batchrelease"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const ruleSteps = "no more Pods than the steps say"

// TestPromises runs the controllers of Rollouts and BatchReleases, in one process, in simulated clusters in which everything goes wrong that
// can: they are killed at each write, their caches lag, answers are lost.
func TestPromises(t *testing.T) { suite(mistakes{}).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which a template came while the one before it was rolled back, and all Pods got it at
// once; in which one came and went before the Rollout looked, and its BatchRelease waited for ever for it to come back; in which the workload
// was scaled down below the Pods that a rollback in batches had counted, and that waited for them for ever.
func TestWhatBrokeOnceHolds(t *testing.T) {
	suite(mistakes{}).Again(t, 7000098, 7000392, 7007927, 6657)
}

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(mistakes{}).Repeat(t) }

// TestMistakesShow makes mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	for name, tc := range map[string]struct {
		made mistakes
		want string
	}{
		"it forgets the mark": {mistakes{plan: func(v State) plan.Plan {
			var kept []release.Action
			for _, a := range v.decision.Do {
				if a.Do != release.Unmark {
					kept = append(kept, a)
				}
			}
			v.decision.Do = kept
			return Plan(v)
		}}, "at rest"},
		"it leaves BatchReleases behind": {mistakes{plan: promises.Misplan(Plan, func(a *plan.Action) {
			if _, is := a.Before.(*v1beta1.BatchRelease); is && a.Verb == plan.Delete {
				a.Verb, a.After = plan.Update, a.Before
			}
		})}, "at rest"},
		"it lets all batches through": {mistakes{plan: promises.Misplan(Plan, func(a *plan.Action) {
			if b, is := a.After.(*v1beta1.BatchRelease); is && b.Spec.ReleasePlan.BatchPartition != nil {
				b.Spec.ReleasePlan.BatchPartition = ptr.To(int32(len(b.Spec.ReleasePlan.Batches)) - 1)
			}
		})}, ruleSteps},
		"it does not hear of BatchReleases": {mistakes{around: promises.Mistake{IsDeaf: func(e simulate.Event) bool {
			_, is := e.New.(*v1beta1.BatchRelease)
			return is
		}}}, "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite(tc.made).Break(t, tc.want)
		})
	}
}

// mistakes are put into the controller of Rollouts.
type mistakes struct {
	plan   func(State) plan.Plan
	around promises.Mistake
}

// both are the two controllers: a Rollout and its BatchRelease have one name.
type both struct{ rollouts, batches *promises.Process }

func (b both) Hear(e simulate.Event, queue *simulate.Queue) {
	b.rollouts.Hear(e, queue)
	b.batches.Hear(e, queue)
}

func (b both) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	first, err := b.rollouts.Reconcile(ctx, request)
	if err != nil {
		return first, err
	}
	second, err := b.batches.Reconcile(ctx, request)
	if first.RequeueAfter == 0 || second.RequeueAfter > 0 && second.RequeueAfter < first.RequeueAfter {
		first = second
	}
	return first, err
}

// suite is a Rollout of a CloneSet, with users, and with the controller of CloneSets played by the test.
func suite(made mistakes) promises.Suite {
	return promises.Suite{
		Scheme:  promises.Scheme(v1beta1.AddToScheme),
		Mistake: made.around,
		Watched: []client.Object{
			&v1beta1.Rollout{}, &v1beta1.BatchRelease{}, &appsv1beta1.CloneSet{}, &corev1.Pod{}, &appsv1.ReplicaSet{},
			&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &appsv1beta1.StatefulSet{}, &appsv1beta1.DaemonSet{},
		},
		Populate: func(w *promises.World) promises.Scenario {
			s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}}
			s.create(newSet())
			s.create(s.newRollout())
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					k := Kind(Options{})
					if made.plan != nil {
						k.Plan = made.plan
					}
					return both{promises.Start(k, c.Runtime(), c), promises.Start(batchrelease.Kind(batchrelease.Options{}), c.Runtime(), c)}
				},
				Act: s.act, Relent: s.relent, Others: []func() bool{s.work, s.approveLate}, Check: check, Converged: s.converged,
			}
		},
	}
}

// scenario is a user with a CloneSet and a Rollout.
type scenario struct {
	promises.User
	// change changes Rollouts and steps that are made; nil changes nothing.
	change func(*v1beta1.Rollout)
}

var (
	rolloutKind = v1beta1.GroupVersion.WithKind("Rollout")
	batchKind   = v1beta1.GroupVersion.WithKind("BatchRelease")
	setKind     = appsv1beta1.GroupVersion.WithKind("CloneSet")
)

func newSet() *appsv1beta1.CloneSet {
	set := &appsv1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	set.Spec.Replicas = ptr.To[int32](6)
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "app:v1"}}
	return set
}

func (s *scenario) newRollout() *v1beta1.Rollout {
	r := &v1beta1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}}
	r.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web"}
	r.Spec.Strategy.Canary = &v1beta1.CanaryStrategy{}
	s.plan(r)
	return r
}

// steps returns three steps that wait for approval, the last of which updates all Pods.
func (s *scenario) steps() []v1beta1.Step {
	var out []v1beta1.Step
	for _, percent := range []int{10 + 10*s.Rand.Intn(3), 40 + 10*s.Rand.Intn(3), 100} {
		out = append(out, v1beta1.Step{Replicas: ptr.To(intstr.FromString(fmt.Sprintf("%d%%", percent)))})
	}
	return out
}

func (s *scenario) create(object client.Object) {
	_, _ = s.Cluster.Create(promises.UserActor, object) // it may be there
}

func (s *scenario) rollout() *v1beta1.Rollout {
	r, _ := s.Cluster.Get(simulate.Key{Kind: rolloutKind, Namespace: "default", Name: "demo"}).(*v1beta1.Rollout)
	return r
}

func (s *scenario) set() *appsv1beta1.CloneSet {
	set, _ := s.Cluster.Get(simulate.Key{Kind: setKind, Namespace: "default", Name: "web"}).(*appsv1beta1.CloneSet)
	return set
}

func (s *scenario) objects(set *appsv1beta1.CloneSet) steer.Objects {
	return steer.Objects{Workload: set, Pods: s.Pods(), Now: s.Cluster.Now()}
}

// act is what users do.
func (s *scenario) act() {
	r := s.rollout()
	if r == nil {
		s.create(s.newRollout())
		return
	}
	change := func(change func(*v1beta1.Rollout)) { simulate.Update(s.Cluster, promises.UserActor, r, change) }
	switch n := s.Rand.Intn(100); {
	case n < 25:
		s.image(s.Image())
	case n < 50:
		s.approve()
	case n < 58:
		change(func(r *v1beta1.Rollout) { r.Spec.Strategy.Paused = !r.Spec.Strategy.Paused })
	case n < 66:
		change(s.plan)
	case n < 74:
		replicas := int32(1 + s.Rand.Intn(8))
		simulate.Update(s.Cluster, promises.UserActor, s.set(), func(set *appsv1beta1.CloneSet) { set.Spec.Replicas = &replicas })
	case n < 84:
		change(func(r *v1beta1.Rollout) {
			if at := commonOf(&r.Status); at != nil {
				at.NextStepIndex = int32(s.Rand.Intn(6)) - 1
			}
		})
	case n < 88:
		s.writeBack()
	case n < 91:
		change(func(r *v1beta1.Rollout) {
			if r.Annotations[keys.RollbackInBatch] == "" {
				r.Annotations = map[string]string{keys.RollbackInBatch: "true"}
			} else {
				r.Annotations = nil
			}
		})
	case n < 95:
		change(func(r *v1beta1.Rollout) { r.Spec.Disabled = !r.Spec.Disabled })
	default:
		s.Cluster.Delete(promises.UserActor, r)
	}
}

// image changes the template.
func (s *scenario) image(image string) {
	now := s.set().DeepCopy()
	now.Spec.Template.Spec.Containers[0].Image = image
	s.write(now)
}

// writeBack replaces the CloneSet by its manifest, as a tool does that knows nothing of releases.
func (s *scenario) writeBack() {
	now := s.set().DeepCopy()
	now.Labels, now.Annotations, now.Spec.UpdateStrategy.RollingUpdate = nil, nil, nil
	s.write(now)
}

// write writes the CloneSet, as the webhook answers.
func (s *scenario) write(now *appsv1beta1.CloneSet) {
	old, r := s.set(), s.rollout()
	_, marked := steer.MarkOf(old)
	if r != nil && r.DeletionTimestamp == nil && !r.Spec.Disabled && old.Labels[keys.WorkloadType] != "" &&
		r.Status.Phase != v1beta1.RolloutPhaseDisabled && r.Status.Phase != v1beta1.RolloutPhaseDisabling {
		kind, _ := steer.Of(setKind.GroupKind(), v1beta1.RollingStylePartition)
		o := s.objects(now)
		if marked {
			o.Workload = kind.Guard(old, o)
			if o.Workload.GetLabels()[keys.WorkloadType] == "" {
				o.Workload = o.Workload.DeepCopyObject().(steer.Object)
				steer.Carry(old, o.Workload)
			}
		}
		if now = o.Workload.(*appsv1beta1.CloneSet); steer.IsRelease(old, now) {
			now = steer.Mark(kind.Freeze(o), r.Name).(*appsv1beta1.CloneSet)
		}
	}
	simulate.Update(s.Cluster, promises.UserActor, old, func(set *appsv1beta1.CloneSet) {
		set.Labels, set.Annotations, set.Spec = now.Labels, now.Annotations, now.Spec
	})
}

// approve approves the step that waits for it.
func (s *scenario) approve() bool {
	r := s.rollout()
	if r == nil || r.Status.CurrentStepState != v1beta1.StepStatePaused || commonOf(&r.Status).CurrentStepState != v1beta1.StepStatePaused {
		return false
	}
	simulate.Update(s.Cluster, promises.UserActor, r, func(r *v1beta1.Rollout) {
		commonOf(&r.Status).CurrentStepState = v1beta1.StepStateReady
	})
	return true
}

// approveLate approves it some time, and reports whether a step waits.
func (s *scenario) approveLate() bool {
	r := s.rollout()
	waits := r != nil && r.Status.CurrentStepState == v1beta1.StepStatePaused
	return waits && (!s.Chance(20) || s.approve())
}

func (s *scenario) relent() {
	r := s.rollout()
	if r == nil {
		s.create(s.newRollout())
		return
	}
	simulate.Update(s.Cluster, promises.UserActor, r, func(r *v1beta1.Rollout) { r.Spec.Strategy.Paused, r.Spec.Disabled = false, false })
}

// work is the controller of CloneSets: it creates, deletes or updates one Pod, or tells how far it is; false if there was nothing to do.
func (s *scenario) work() bool {
	set := s.set()
	update := "web-" + set.Spec.Template.Spec.Containers[0].Image[len("app:"):]
	var old, updated []*corev1.Pod
	for _, p := range s.Pods() {
		if p.Status.Phase == corev1.PodFailed && p.DeletionTimestamp == nil {
			s.Cluster.Delete("cloneset", p)
			return true
		}
		if p.Labels[appsv1.ControllerRevisionHashLabelKey] == update {
			updated = append(updated, p)
		} else {
			old = append(old, p)
		}
	}
	status := set.Status
	status.ObservedGeneration, status.UpdateRevision = set.Generation, update
	status.Replicas, status.UpdatedReplicas = int32(len(old)+len(updated)), int32(len(updated))
	if status.CurrentRevision == "" || len(old) == 0 {
		status.CurrentRevision = update
	}
	if status.ObservedGeneration != set.Status.ObservedGeneration || status.UpdateRevision != set.Status.UpdateRevision ||
		status.Replicas != set.Status.Replicas || status.UpdatedReplicas != set.Status.UpdatedReplicas || status.CurrentRevision != set.Status.CurrentRevision {
		simulate.Update(s.Cluster, "cloneset", set, func(set *appsv1beta1.CloneSet) { set.Status = status })
		return true
	}
	replicas := int(*set.Spec.Replicas)
	keep := keptOf(set)
	switch {
	case len(old)+len(updated) < replicas && len(old) < keep && set.Status.CurrentRevision != update:
		s.addPod(set, set.Status.CurrentRevision)
	case len(old)+len(updated) < replicas:
		s.addPod(set, update)
	case len(old)+len(updated) > replicas && len(old) > keep || len(old)+len(updated) > replicas && len(updated) == 0:
		s.Cluster.Delete("cloneset", old[0])
	case len(old)+len(updated) > replicas:
		s.Cluster.Delete("cloneset", updated[0])
	case len(old) > keep:
		simulate.Update(s.Cluster, "cloneset", old[0], func(p *corev1.Pod) { p.Labels = labels(update) })
	default:
		return false
	}
	return true
}

func keptOf(set *appsv1beta1.CloneSet) int {
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		if n, err := budget.Partition(rolling.Partition, int(*set.Spec.Replicas)); err == nil {
			return n
		}
	}
	return 0
}

func labels(revision string) map[string]string {
	return map[string]string{appsv1.ControllerRevisionHashLabelKey: revision, keys.PodTemplateHash: revision[len("web-"):]}
}

func (s *scenario) addPod(set *appsv1beta1.CloneSet, revision string) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("web-", s.Cluster.Revision()), Labels: labels(revision)}}
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, setKind)}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.Cluster.Now())}}
	s.create(p)
}

// converged returns what is wrong, now that the cluster is at rest.
func (s *scenario) converged() (problems []string) {
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("at rest, "+format, args...))
	}
	set, r := s.set(), s.rollout()
	if _, marked := steer.MarkOf(set); marked || set.Annotations[keys.ControlInfo] != "" {
		wrong("the CloneSet carries %v", set.Annotations)
	}
	if kept := keptOf(set); kept > 0 {
		wrong("the CloneSet keeps %d Pods old", kept)
	}
	if n := len(s.Cluster.Of(batchKind)); n > 0 {
		wrong("%d BatchReleases are there", n)
	}
	if r != nil && r.Status.Phase != v1beta1.RolloutPhaseHealthy { // one that was being deleted is gone by now
		wrong("the Rollout is %+v", r.Status)
	}
	return problems
}
