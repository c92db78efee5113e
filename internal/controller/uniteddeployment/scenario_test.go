package uniteddeployment

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// scenario is one user with one UnitedDeployment, the controllers of the workloads of its subsets, and a Deployment of somebody else with
// the same labels.
type scenario struct {
	promises.User
	key     simulate.Key
	foreign client.Object
	// place says in which clusters subsets are; nil where there is only one.
	place func(*v1beta1.UnitedDeployment)
	// isOurs tells the workloads of the UnitedDeployment.
	isOurs func(client.Object) bool
}

func newScenario(w *promises.World) *scenario {
	s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}, key: simulate.Key{Kind: kind(), Namespace: "default", Name: "web"}}
	labels := map[string]string{"app": "web", keys.SubsetName: "a"}
	s.isOurs = func(o client.Object) bool {
		owner := metav1.GetControllerOfNoCopy(o)
		return owner != nil && owner.Kind == s.key.Kind.Kind
	}
	zero := int32(0)
	s.foreign = s.made(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web-a", Namespace: "default", Labels: labels},
		Spec:       appsv1.DeploymentSpec{Replicas: &zero, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	})
	return s
}

func (s *scenario) made(object client.Object) client.Object {
	out, err := s.Cluster.Create(promises.UserActor, object)
	if err != nil {
		panic(err)
	}
	return out
}

func (s *scenario) set() *v1beta1.UnitedDeployment {
	set, _ := s.Cluster.Get(s.key).(*v1beta1.UnitedDeployment)
	return set
}

func (s *scenario) create() {
	set := &v1beta1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Name: s.key.Name, Namespace: s.key.Namespace}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	if s.Chance(30) {
		set.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web"}},
		}}
	}
	s.scale(set)
	s.template(set)
	s.subsets(set)
	s.made(set)
}

func (s *scenario) scale(set *v1beta1.UnitedDeployment) {
	n := int32(s.Rand.Intn(8))
	set.Spec.Replicas = &n
}

// template gives the workloads an image, and sometimes another kind.
func (s *scenario) template(set *v1beta1.UnitedDeployment) {
	meta := metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}
	if s.Chance(30) {
		meta.Labels["tier"] = "one"
	}
	pods := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	pods.Spec.Containers = []corev1.Container{{Name: "app", Image: s.Image()}}
	which := set.Spec.Template
	none := which == v1beta1.SubsetTemplate{}
	n := s.Rand.Intn(3)
	if !none && s.Chance(80) { // mostly the kind stays
		n = map[bool]int{which.DeploymentTemplate != nil: 0, which.CloneSetTemplate != nil: 1, which.AdvancedStatefulSetTemplate != nil: 2}[true]
	}
	set.Spec.Template = v1beta1.SubsetTemplate{}
	switch n {
	case 0:
		set.Spec.Template.DeploymentTemplate = &v1beta1.DeploymentTemplateSpec{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: pods}}
	case 1:
		spec := v1beta1.CloneSetSpec{CloneSetBaseSpec: v1beta1.CloneSetBaseSpec{Template: pods}}
		set.Spec.Template.CloneSetTemplate = &v1beta1.CloneSetTemplateSpec{ObjectMeta: meta, Spec: spec}
	default:
		spec := v1beta1.StatefulSetSpec{Template: pods}
		set.Spec.Template.AdvancedStatefulSetTemplate = &v1beta1.AdvancedStatefulSetTemplateSpec{ObjectMeta: meta, Spec: spec}
	}
}

// subsets chooses which subsets there are, what they get, and their partitions.
func (s *scenario) subsets(set *v1beta1.UnitedDeployment) {
	set.Spec.Topology, set.Spec.UpdateStrategy = v1beta1.Topology{}, v1beta1.UnitedDeploymentUpdateStrategy{}
	names := []string{"a", "b", "c"}[:1+s.Rand.Intn(3)]
	limits := s.Chance(50)
	if limits && s.Chance(50) {
		set.Spec.Topology.ScheduleStrategy.Type = v1beta1.AdaptiveUnitedDeploymentScheduleStrategyType
	}
	partitions := map[string]int32{}
	for i, name := range names {
		subset := v1beta1.Subset{Name: name}
		amount := intstr.FromInt32(int32(s.Rand.Intn(4)))
		switch last := i == len(names)-1; {
		case limits && !last:
			subset.MaxReplicas = &amount
		case !limits && s.Chance(40) && !last:
			subset.Replicas = &amount
		}
		if s.Chance(20) {
			subset.Patch = runtime.RawExtension{Raw: []byte(fmt.Sprintf(`{"spec":{"hostname":"h%d"}}`, s.Rand.Intn(3)))}
		}
		if s.Chance(30) {
			partitions[name] = int32(s.Rand.Intn(4))
		}
		set.Spec.Topology.Subsets = append(set.Spec.Topology.Subsets, subset)
	}
	set.Spec.UpdateStrategy.ManualUpdate = &v1beta1.ManualUpdate{Partitions: partitions}
	if s.Chance(30) {
		most := intstr.FromInt32(int32(1 + s.Rand.Intn(3)))
		set.Spec.UpdateStrategy.MaxUnavailable = &most
	}
	if s.Chance(30) {
		set.Spec.UpdateStrategy.Waves = []v1beta1.UpdateWave{{Name: "first", Subsets: names[len(names)-1:]}}
	}
	if s.place != nil {
		s.place(set)
	}
}

// workloads returns the workloads that the UnitedDeployment controls.
func (s *scenario) workloads() []plan.Object {
	var out []plan.Object
	for _, k := range workloadKinds() {
		for _, object := range s.Cluster.Of(k.gvk) {
			if s.isOurs(object) {
				out = append(out, object.(plan.Object))
			}
		}
	}
	return out
}

// act does something that a user might do at any moment.
func (s *scenario) act() {
	set := s.set()
	if set == nil {
		s.create()
		return
	}
	edit := func(change func(*v1beta1.UnitedDeployment)) {
		simulate.Update(s.Cluster, promises.UserActor, set, change)
	}
	workloads := s.workloads()
	switch n := s.Rand.Intn(100); {
	case n < 15:
		edit(s.scale)
	case n < 25:
		edit(s.template)
	case n < 35:
		edit(s.subsets)
	case n < 38:
		s.Cluster.Delete(promises.UserActor, set)
	case n < 45 && len(workloads) > 0:
		s.Cluster.Delete(promises.UserActor, workloads[s.Rand.Intn(len(workloads))])
	case n < 60 && len(workloads) > 0:
		s.meddle(workloads[s.Rand.Intn(len(workloads))])
	default:
		s.Cluster.Sleep(time.Duration(s.Rand.Intn(40)) * time.Second)
	}
}

// meddle changes a workload by hand.
func (s *scenario) meddle(workload plan.Object) {
	simulate.Update(s.Cluster, promises.UserActor, workload, func(w plan.Object) {
		f := fieldsOf(w)
		switch s.Rand.Intn(3) {
		case 0:
			n := int32(s.Rand.Intn(9))
			*f.replicas = &n
		case 1:
			f.pods.Spec.Containers[0].Image = "meddled"
		default:
			w.SetLabels(with(w.GetLabels(), map[string]string{"note": "of a user"}))
		}
	})
}

func fieldsOf(w plan.Object) fields {
	for _, k := range workloadKinds() {
		if sameType(k, w) {
			return k.fields(w)
		}
	}
	panic(fmt.Sprintf("there are no workloads of type %T", w))
}

func (s *scenario) relent() {
	if s.set() == nil {
		s.create()
	}
}

// run does what the controllers of workloads do next: one step of one of them.
func (s *scenario) run() bool {
	return slices.ContainsFunc(s.workloads(), func(w plan.Object) bool { return w.GetDeletionTimestamp() == nil && s.step(w) })
}

const workloadActor = "workload controller"

func (s *scenario) step(w plan.Object) bool {
	owner := w
	if _, is := w.(*appsv1.Deployment); is {
		key := simulate.Key{Kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), Namespace: w.GetNamespace(), Name: w.GetName() + "-set"}
		set, _ := s.Cluster.Get(key).(*appsv1.ReplicaSet)
		if set == nil {
			set = &appsv1.ReplicaSet{ObjectMeta: s.owned(w, key.Name)}
			s.made(set)
			return true
		}
		owner = set
	}
	f := fieldsOf(w)
	replicas, partition := int(valueOr(*f.replicas, 1)), 0
	if f.partition != nil {
		partition = int(valueOr(f.partition(), 0))
	}
	all := s.pods(owner.GetUID())
	active := slices.DeleteFunc(slices.Clone(all), func(p *corev1.Pod) bool { return !pod.IsActive(p) })
	isOld := func(p *corev1.Pod) bool {
		return p.Labels[keys.SubsetRevision] != f.pods.Labels[keys.SubsetRevision] || p.Spec.Containers[0].Image != f.pods.Spec.Containers[0].Image ||
			p.Spec.Hostname != f.pods.Spec.Hostname
	}
	var old []*corev1.Pod
	for _, p := range active {
		if isOld(p) {
			old = append(old, p)
		}
	}
	switch {
	case len(active) < replicas:
		p := &corev1.Pod{ObjectMeta: s.owned(owner, s.freeName(w.GetName())), Spec: *f.pods.Spec.DeepCopy()}
		p.Labels = f.pods.Labels
		s.made(p)
		return true
	case len(active) > replicas:
		s.Cluster.Delete(workloadActor, active[len(active)-1])
		return true
	case len(old) > partition:
		s.Cluster.Delete(workloadActor, old[len(old)-1])
		return true
	}
	return s.tell(w, active, len(old))
}

// tell writes the status of a workload, if it has changed.
func (s *scenario) tell(w plan.Object, active []*corev1.Pod, old int) bool {
	at := s.Cluster.Revision()
	ready := 0
	for _, p := range active {
		if pod.IsReady(p) {
			ready++
		}
	}
	simulate.Update(s.Cluster, workloadActor, w, func(w plan.Object) {
		status := reflect.ValueOf(w).Elem().FieldByName("Status")
		for name, n := range map[string]int{
			"Replicas": len(active), "ReadyReplicas": ready, "AvailableReplicas": ready, "UpdatedReplicas": len(active) - old,
			"ObservedGeneration": int(w.GetGeneration()),
		} {
			status.FieldByName(name).SetInt(int64(n))
		}
	})
	return s.Cluster.Revision() != at
}

func (s *scenario) owned(owner plan.Object, name string) metav1.ObjectMeta {
	gvk := s.Cluster.KeyOf(owner).Kind
	return metav1.ObjectMeta{Name: name, Namespace: owner.GetNamespace(), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, gvk)}}
}

func (s *scenario) pods(owner types.UID) []*corev1.Pod {
	var out []*corev1.Pod
	for _, object := range s.Cluster.Of(corev1.SchemeGroupVersion.WithKind("Pod")) {
		if controller := metav1.GetControllerOfNoCopy(object); controller != nil && controller.UID == owner {
			out = append(out, object.(*corev1.Pod))
		}
	}
	return out
}

// freeName returns the first name that no Pod has.
func (s *scenario) freeName(prefix string) string {
	for n := 0; ; n++ {
		key := simulate.Key{Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Namespace: "default", Name: fmt.Sprintf("%s-%d", prefix, n)}
		if s.Cluster.Get(key) == nil {
			return key.Name
		}
	}
}
