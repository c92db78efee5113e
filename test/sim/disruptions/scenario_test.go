package disruptions

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/controller/cloneset"
	"github.com/seed-69ecc383/kruise/internal/controller/podunavailablebudget"
	"github.com/seed-69ecc383/kruise/internal/controller/sidecarset"
	"github.com/seed-69ecc383/kruise/internal/controller/statefulset"
	"github.com/seed-69ecc383/kruise/internal/defaults"
	"github.com/seed-69ecc383/kruise/internal/disruption"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/internal/rules/inject"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// The objects that share Pods of one budget. Their names tell which controller reconciles them.
const (
	namespace = "default"
	clones    = "clones"
	stateful  = "stateful"
	sidecars  = "sidecars"
	guard     = "guard"
)

// scenario is an application of a CloneSet and a StatefulSet, with a sidecar in all of its Pods and one budget for them.
type scenario struct {
	promises.User
	wrong mistake
	// leader runs the controllers and serves a webhook; other only serves one, by a view of its own.
	leader, other *replica
	view          *simulate.View
}

func newScenario(w *promises.World, wrong mistake) *scenario {
	s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}, wrong: wrong}
	w.Rig.Sound = true // what fails by itself is nobody's disruption
	s.create(s.newBudget())
	s.create(s.newSidecars())
	s.create(s.newClones())
	s.create(s.newStateful())
	s.startOther()
	s.Cluster.Default, s.Cluster.Admit = s.inject, s.admit
	return s
}

func (s *scenario) create(o client.Object) {
	if _, err := s.Cluster.Create(promises.UserActor, o); err != nil {
		panic(err)
	}
}

func (s *scenario) newBudget() *policyv1beta1.PodUnavailableBudget {
	b := &policyv1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: guard}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	s.limit(b)
	return b
}

func (s *scenario) limit(b *policyv1beta1.PodUnavailableBudget) {
	b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, nil
	if s.Chance(20) {
		b.Spec.MinAvailable = s.Amount(7)
		return
	}
	b.Spec.MaxUnavailable = s.Amount(3)
}

func (s *scenario) newSidecars() *v1beta1.SidecarSet {
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: sidecars}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "log", Image: s.Image()}}}
	all := intstr.FromString("100%")
	set.Spec.UpdateStrategy.MaxUnavailable = &all
	if err := defaults.SidecarSet(set); err != nil {
		panic(err)
	}
	return set
}

func (s *scenario) template(of string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"app": "web", "of": of}, Annotations: map[string]string{keys.RelatedBudget: guard, keys.RelatedBudgetOld: guard},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: s.Image()}}},
	}
}

func (s *scenario) newClones() *v1beta1.CloneSet {
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clones}}
	set.Spec.Selector, set.Spec.Template = &metav1.LabelSelector{MatchLabels: map[string]string{"of": clones}}, s.template(clones)
	replicas, all := int32(2+s.Rand.Intn(4)), intstr.FromString("100%")
	set.Spec.Replicas = &replicas
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: &all}
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling.PodUpdatePolicy = v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType; s.Chance(20) {
		rolling.PodUpdatePolicy = v1beta1.RecreateCloneSetPodUpdatePolicyType
	}
	if s.Chance(30) {
		rolling.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: int32(1 + s.Rand.Intn(15))}
	}
	defaults.CloneSet(set, nil, defaults.Options{})
	return set
}

func (s *scenario) newStateful() *v1beta1.StatefulSet {
	set := &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: stateful}}
	set.Spec.Selector, set.Spec.Template = &metav1.LabelSelector{MatchLabels: map[string]string{"of": stateful}}, s.template(stateful)
	replicas, all := int32(1+s.Rand.Intn(3)), intstr.FromString("100%")
	set.Spec.Replicas, set.Spec.ServiceName, set.Spec.PodManagementPolicy = &replicas, "web", appsv1.ParallelPodManagement
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{
		MaxUnavailable: &all, PodUpdatePolicy: v1beta1.RecreatePodUpdateStrategyType,
	}
	if s.Chance(20) {
		set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceIfPossiblePodUpdateStrategyType
	}
	defaults.StatefulSet(set, nil, defaults.Options{})
	return set
}

// inject puts the sidecar into a new Pod.
func (s *scenario) inject(p *corev1.Pod) {
	set, err := inject.Compile(get[*v1beta1.SidecarSet](s, sidecars))
	if err == nil {
		_, err = inject.Into(p, []*inject.Sidecars{set}, inject.Options{Now: s.Cluster.Now()})
	}
	if err != nil {
		panic(err)
	}
}

// get returns a stored object of the scenario.
func get[T client.Object](s *scenario, name string) T {
	kinds := map[string]simulate.Key{
		clones:   {Kind: v1beta1.GroupVersion.WithKind("CloneSet"), Namespace: namespace},
		stateful: {Kind: v1beta1.GroupVersion.WithKind("StatefulSet"), Namespace: namespace},
		sidecars: {Kind: v1beta1.GroupVersion.WithKind("SidecarSet")},
		guard:    {Kind: policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget"), Namespace: namespace},
	}
	key := kinds[name]
	key.Name = name
	return s.Cluster.Get(key).(T)
}

// any returns one of the replicas.
func (s *scenario) any() *replica {
	if s.leader == nil || s.Chance(50) {
		return s.other
	}
	return s.leader
}

// admit has the API server ask one of the replicas about the Pods that the match conditions of the webhook let through.
func (s *scenario) admit(before, after *corev1.Pod) error {
	if rules.Related(before.Annotations) == "" || before.DeletionTimestamp != nil {
		return nil
	}
	return s.any().review(before, after)
}

// startOther starts the replica that does not lead, with what there is now.
func (s *scenario) startOther() {
	s.view = s.Cluster.NewView()
	index(s.view)
	for _, kind := range watched() {
		s.view.Watch(kind)
	}
	now := func() time.Time { return s.Cluster.Now().Add(-mostApart - s.wrong.late) }
	s.other = newReplica(s.view, simulate.Connection{To: s.Cluster.Connect("webhook", s.Rand)}, now, s.wrong)
}

func index(view *simulate.View) {
	if err := observe.AddIndexes(context.Background(), view); err != nil {
		panic(err)
	}
	if err := podunavailablebudget.Kind(podunavailablebudget.Options{}).Indexes(context.Background(), view); err != nil {
		panic(err)
	}
}

// catchUp lets the cache of the replica that does not lead take over something that it has missed, and reports whether there was anything.
func (s *scenario) catchUp() bool {
	lagging := s.view.Lagging()
	if len(lagging) == 0 {
		return false
	}
	s.view.Deliver(lagging[s.Rand.Intn(len(lagging))])
	return true
}

func watched() []client.Object {
	return []client.Object{
		&v1beta1.CloneSet{}, &v1beta1.StatefulSet{}, &v1beta1.SidecarSet{}, &policyv1beta1.PodUnavailableBudget{}, &corev1.Pod{},
		&appsv1.ControllerRevision{}, &corev1.PersistentVolumeClaim{}, &appsv1.ReplicaSet{}, &policyv1.PodDisruptionBudget{},
	}
}

// controllers are those of one manager. Requests name the owner only, which tells whose it is.
type controllers []struct {
	owner string
	*promises.Process
}

// Reconcile has the controller of an owner reconcile it.
func (c controllers) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	for _, one := range c {
		if one.owner == r.Name {
			return one.Reconcile(ctx, r)
		}
	}
	return reconcile.Result{}, nil
}

// Hear has all controllers hear of an event.
func (c controllers) Hear(e simulate.Event, q *simulate.Queue) {
	for _, one := range c {
		one.Hear(e, q)
	}
}

// start starts a manager with all controllers.
func (s *scenario) start(c promises.Connection) simulate.Process {
	index(c.Cached.Reader.(*simulate.View))
	s.leader = newReplica(c.Cached.Reader, simulate.Connection{To: c.Live.Reader.(*simulate.Client)}, c.Now, s.wrong)
	runtime := func(budgets apply.Budgets) loop.Runtime {
		e := &apply.Executor{Config: c.Executor.Config}
		e.Budgets = budgets
		return loop.Runtime{Executor: e, Live: c.Glance, Workers: 1}
	}
	asks := disruption.Writes{Evaluator: s.leader.evaluator, Updates: true}
	return controllers{
		{clones, promises.Start(cloneset.Kind(cloneset.Options{}), runtime(asks), c)},
		{stateful, promises.Start(statefulset.Kind(statefulset.Options{StartOrdinal: true}), runtime(asks), c)},
		{sidecars, promises.Start(sidecarset.Kind(sidecarset.Options{Namespace: "kruise-system"}), runtime(asks), c)},
		{guard, promises.Start(podunavailablebudget.Kind(podunavailablebudget.Options{}), runtime(nil), c)},
	}
}

// act does something that users, or those who drain nodes, might do at any moment.
func (s *scenario) act() {
	edit := func(change func(*v1beta1.CloneSet)) {
		simulate.Update(s.Cluster, promises.UserActor, get[*v1beta1.CloneSet](s, clones), change)
	}
	pods := s.Pods()
	switch n := s.Rand.Intn(100); {
	case n < 18:
		edit(func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = s.Image() })
	case n < 32:
		simulate.Update(s.Cluster, promises.UserActor, get[*v1beta1.StatefulSet](s, stateful), func(set *v1beta1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Image = s.Image()
		})
	case n < 44:
		simulate.Update(s.Cluster, promises.UserActor, get[*v1beta1.SidecarSet](s, sidecars), func(set *v1beta1.SidecarSet) { set.Spec.Containers[0].Image = s.Image() })
	case n < 48:
		edit(func(set *v1beta1.CloneSet) { *set.Spec.Replicas = int32(1 + s.Rand.Intn(6)) })
	case n < 52:
		simulate.Update(s.Cluster, promises.UserActor, get[*policyv1beta1.PodUnavailableBudget](s, guard), s.limit)
	case n < 54:
		s.startOther()
	case n < 60:
		for s.catchUp() {
		}
	case len(pods) == 0:
	case n < 78:
		s.evict(pods[s.Rand.Intn(len(pods))])
	case n < 90:
		s.Cluster.Delete(promises.UserActor, pods[s.Rand.Intn(len(pods))])
	default:
		p := pods[s.Rand.Intn(len(pods))]
		edit(func(set *v1beta1.CloneSet) {
			set.Spec.ScaleStrategy.PodsToDelete = append(set.Spec.ScaleStrategy.PodsToDelete, p.Name)
		})
	}
}

// evict evicts a Pod as a drain does: one that is permitted may never come to it.
func (s *scenario) evict(p *corev1.Pod) {
	if p.DeletionTimestamp == nil && s.any().reviewEviction(p) == nil && s.Chance(80) {
		s.Cluster.Delete("eviction", p)
	}
}

// relent lifts what keeps rollouts from ending.
func (s *scenario) relent() {
	simulate.Update(s.Cluster, promises.UserActor, get[*policyv1beta1.PodUnavailableBudget](s, guard), func(b *policyv1beta1.PodUnavailableBudget) {
		one := intstr.FromInt32(1)
		b.Spec.MaxUnavailable, b.Spec.MinAvailable = &one, nil
	})
}

// converged returns what is not as users want it, now that the cluster is at rest.
func (s *scenario) converged() []string {
	var problems []string
	wanted := map[string]corev1.PodTemplateSpec{clones: get[*v1beta1.CloneSet](s, clones).Spec.Template, stateful: get[*v1beta1.StatefulSet](s, stateful).Spec.Template}
	replicas := map[string]int32{clones: *get[*v1beta1.CloneSet](s, clones).Spec.Replicas, stateful: *get[*v1beta1.StatefulSet](s, stateful).Spec.Replicas}
	images := map[string]string{"log": get[*v1beta1.SidecarSet](s, sidecars).Spec.Containers[0].Image}
	for _, p := range s.Pods() {
		of := p.Labels["of"]
		replicas[of]--
		images["app"] = wanted[of].Spec.Containers[0].Image
		current := !slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Image != images[c.Name] })
		if !rules.Available(p) || !current {
			problems = append(problems, fmt.Sprintf("at rest, Pod %s is available: %t, is up to date: %t", p.Name, rules.Available(p), current))
		}
	}
	for of, missing := range replicas {
		if missing != 0 {
			problems = append(problems, fmt.Sprintf("at rest, %d Pods of %s are missing", missing, of))
		}
	}
	slices.Sort(problems)
	return problems
}
