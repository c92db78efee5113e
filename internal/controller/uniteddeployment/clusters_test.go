package uniteddeployment

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
	memberrules "github.com/seed-69ecc383/kruise/internal/rules/member"
)

// fleet is a UnitedDeployment with subset a in its own cluster, b in m1 and c in m2, and what each cluster has.
type fleet struct {
	*world
	planned func(*State) plan.Plan
	members map[string]*site
	// away are clusters whose place another one has taken.
	away []*site
	// broken is the first promise that was broken.
	broken string
	// lose has writes in members get lost.
	lose func() bool
}

// site is another cluster.
type site struct {
	name, id string
	up, late bool
	// unknown means that the controller has started and is connecting to it.
	unknown bool
	// words are those in which it does not answer.
	words     string
	workloads []Workload
	saved     []Workload
	// restored means that it holds what the controller may have seen to be gone.
	restored bool
	// joining means that it is being connected to.
	joining bool
}

func newFleet(t *testing.T, policy v1beta1.UnreachablePolicyType) *fleet {
	f := &fleet{planned: planOf, members: map[string]*site{}, lose: func() bool { return false }}
	f.world = newWorld(t, func(set *v1beta1.UnitedDeployment) {
		set.Spec.Replicas = new(int32(9))
		set.Spec.Topology = v1beta1.Topology{Subsets: []v1beta1.Subset{{Name: "a"}, remoteSubset("b", "m1"), remoteSubset("c", "m2")}}
		set.Spec.Topology.ClusterRegistry = &v1beta1.ClusterRegistry{UnreachablePolicy: policy}
		if policy == v1beta1.ReallocateUnreachable {
			set.Spec.Topology.ScheduleStrategy.Type = v1beta1.AdaptiveUnitedDeploymentScheduleStrategyType
		}
	})
	f.HubID = "hub"
	for _, name := range []string{"m1", "m2"} {
		f.members[name] = &site{name: name, id: "id-" + name, up: true}
	}
	return f
}

func planOf(v *State) plan.Plan { return Plan(*v) }

func quantity(n int32) *intstr.IntOrString {
	out := intstr.FromInt32(n)
	return &out
}

func remoteSubset(name, cluster string) v1beta1.Subset {
	return v1beta1.Subset{Name: name, TargetCluster: &v1beta1.ClusterReference{Name: cluster}}
}

func placeNamed(name string) memberrules.Place {
	return memberrules.Place{Kind: "ClusterProfile", Namespace: "default", Name: name}
}

// look returns what a pass sees.
func (f *fleet) look() Snapshot {
	s := f.Snapshot
	s.Workloads = slices.Clone(f.Workloads)
	places := wantedPlaces(f.Set)
	for _, p := range memberrules.Recorded(f.Set.Status.MemberClusters) {
		if !slices.Contains(places, p) {
			places = append(places, p)
		}
	}
	for _, p := range places {
		at := f.members[p.Name]
		c := Cluster{Place: p, Seen: memberrules.Seen{Reason: connection.Unreachable, Message: connection.Unreached + at.words, ID: at.id}}
		if at.up {
			c.Reason, c.Message, c.LastContact = connection.Connected, "", f.Now
		} else if at.joining {
			c.Reason = connection.Connecting
		}
		if at.unknown {
			c.Seen = memberrules.Seen{Reason: connection.Connecting, Message: "not known yet", Unselected: true}
		}
		record := memberrules.Find(f.Set.Status.MemberClusters, p)
		if c.Readable = at.up && !at.late && !at.unknown && memberrules.Judge(p, record, c.Seen).Ready(); c.Readable {
			for _, w := range at.workloads {
				w.Cluster = p.Key()
				s.Workloads = append(s.Workloads, w)
			}
		}
		s.Clusters = append(s.Clusters, c)
	}
	return s
}

func (f *fleet) breaks(format string, args ...any) {
	if f.broken == "" {
		f.broken = fmt.Sprintf(format, args...)
	}
}

// pass makes a pass, and reports whether it wrote anything.
func (f *fleet) pass() (wrote bool) {
	v, err := Classify(f.look())
	if err != nil {
		f.Fatal(err)
	}
	p := f.planned(&v)
	var done apply.Outcome
	for _, a := range p.Actions() {
		wrote = true
		switch {
		case a.Cluster != "":
			f.send(a)
			continue
		case a.After == f.Set || isSet(a.After):
			f.Set = a.After.(*v1beta1.UnitedDeployment)
		default:
			f.write(a)
		}
		done.Results = append(done.Results, apply.Result{Action: a})
	}
	before := f.Set.Status
	f.Set = f.Set.DeepCopy()
	f.Set.Status = Status(v, p, done)
	if !cmp.Equal(before, f.Set.Status) {
		wrote = true
	}
	for _, at := range append(f.away, f.members["m1"], f.members["m2"]) {
		r := memberrules.Find(f.Set.Status.MemberClusters, placeNamed(at.name))
		if len(at.workloads) > 0 && !at.restored && (r == nil || r.ClusterID != at.id) {
			f.breaks("cluster %s holds %s and is forgotten", at.id, at.workloads[0].Object.GetName())
		}
	}
	return wrote
}

func isSet(object plan.Object) bool {
	_, is := object.(*v1beta1.UnitedDeployment)
	return is
}

// send carries out a write in a member.
func (f *fleet) send(a plan.Action) {
	at := f.members[memberrules.PlaceOf(a.Cluster).Name]
	r := memberrules.Find(f.Set.Status.MemberClusters, placeNamed(at.name))
	switch {
	case r == nil || !isElsewhere(f.Set):
		f.breaks("%s is written to before it is recorded", at.name)
	case r.ClusterID != at.id:
		f.breaks("%s is written to, which was %s", at.id, r.ClusterID)
	case !at.up:
		f.breaks("%s is written to, which does not answer", at.name)
	}
	if !at.up || f.lose() {
		return
	}
	in := &world{T: f.T, Snapshot: Snapshot{Workloads: at.workloads}, uids: f.uids + 100}
	f.uids += 100
	if a.Verb == plan.Create && slices.ContainsFunc(at.workloads, func(w Workload) bool { return w.Object.GetName() == a.After.GetName() }) {
		return
	}
	in.write(a)
	at.workloads = in.Workloads
	for _, w := range at.workloads {
		if len(w.Object.GetOwnerReferences()) > 0 {
			f.breaks("%s has an owner in another cluster", w.Object.GetName())
		}
	}
}

// run has all workloads run that can be reached. A Pod that runs the template goes on as it is.
func (f *fleet) run() {
	ready := func(workloads []Workload) {
		for i := range workloads {
			w := &workloads[i]
			o := w.Object.DeepCopyObject().(*appsv1.Deployment)
			var pods []*corev1.Pod
			for n := range *o.Spec.Replicas {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", o.Name, n), Namespace: "ns", Labels: o.Spec.Template.Labels}}
				p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
					{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(f.Now)},
				}}
				if int(n) < len(w.Pods) && cmp.Equal(w.Pods[n].Labels, p.Labels) {
					p = w.Pods[n]
				}
				pods = append(pods, p)
			}
			n := *o.Spec.Replicas
			o.Status = appsv1.DeploymentStatus{Replicas: n, ReadyReplicas: n, UpdatedReplicas: n, ObservedGeneration: o.Generation}
			w.Object, w.Pods = o, pods
		}
	}
	ready(f.Workloads)
	for _, at := range f.members {
		if at.up {
			ready(at.workloads)
		}
	}
}

// rest makes passes until nothing is written any more.
func (f *fleet) rest() {
	for range 60 {
		f.run()
		if !f.pass() {
			return
		}
		f.Now = f.Now.Add(time.Second)
	}
	f.breaks("it never rests")
}

// specified returns the replicas of a subset in truth.
func (f *fleet) specified(subset string) (sum int32) {
	all := slices.Clone(f.Workloads)
	for _, at := range f.members {
		all = append(all, at.workloads...)
	}
	for _, w := range all {
		if w.Object.GetLabels()[keys.SubsetName] == subset {
			sum += *w.Object.(*appsv1.Deployment).Spec.Replicas
		}
	}
	return sum
}

func (f *fleet) has(a, b, c int32) {
	f.Helper()
	if got := []int32{f.specified("a"), f.specified("b"), f.specified("c")}; !slices.Equal(got, []int32{a, b, c}) {
		f.Errorf("the subsets have %d, want %d", got, []int32{a, b, c})
	}
	if f.broken != "" {
		f.Error(f.broken)
	}
}

func (f *fleet) scale(n int32) {
	f.change(func(set *v1beta1.UnitedDeployment) { set.Spec.Replicas = &n })
}

// TestAMemberGoesAwayAndComesBack: what it has stays as it was, others get what is left, and no Pod is taken away before another is ready.
func TestAMemberGoesAwayAndComesBack(t *testing.T) {
	f := newFleet(t, v1beta1.FreezeUnreachable)
	f.rest()
	f.has(3, 3, 3)
	f.members["m1"].up = false
	f.scale(13)
	f.rest()
	f.has(5, 3, 5)
	if s := f.Set.Status; s.Replicas != 13 || s.ReadyReplicas != 13 {
		t.Errorf("its Pods do not count while it is away: %+v", s)
	}
	f.Now = f.Now.Add(time.Hour)
	f.pass()
	if s := f.Set.Status; s.Replicas != 13 || s.ReadyReplicas != 10 {
		t.Errorf("its Pods count as ready after the toleration: %+v", s)
	}
	f.members["m1"].up = true
	f.pass()
	f.has(5, 4, 5)
	f.pass()
	f.has(5, 4, 5) // until its Pod is ready
	f.rest()
	if sum := f.specified("a") + f.specified("b") + f.specified("c"); sum != 13 || f.specified("b") != 4 {
		t.Errorf("in the end they have %d, b has %d", sum, f.specified("b"))
	}
}

// TestSubstitutes: with Reallocate others run substitutes after the toleration, and these go when the cluster is back.
func TestSubstitutes(t *testing.T) {
	f := newFleet(t, v1beta1.ReallocateUnreachable)
	f.change(func(set *v1beta1.UnitedDeployment) {
		for i := range set.Spec.Topology.Subsets[:2] {
			set.Spec.Topology.Subsets[i].MaxReplicas = quantity(3)
		}
	})
	f.rest()
	f.has(3, 3, 3)
	f.members["m1"].up = false
	f.rest()
	f.has(3, 3, 3)
	f.Now = f.Now.Add(301 * time.Second)
	f.rest()
	f.has(3, 3, 6)
	f.members["m1"].up = true
	f.pass()
	f.has(3, 3, 3)
}

// TestAManagerThatStartsChangesNothing: as long as it does not know how the clusters stand, what was told before stands.
func TestAManagerThatStartsChangesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		policy v1beta1.UnreachablePolicyType
		before func(*fleet)
	}{
		"while all clusters answer":   {v1beta1.FreezeUnreachable, func(*fleet) {}},
		"while substitutes could run": {v1beta1.ReallocateUnreachable, func(*fleet) {}},
		"while one is away": {v1beta1.FreezeUnreachable, func(f *fleet) {
			f.members["m1"].up = false
			f.scale(13)
		}},
		"while substitutes run for one that is away": {v1beta1.ReallocateUnreachable, func(f *fleet) { f.members["m1"].up = false }},
		"while one that no subset is in any more is away": {v1beta1.FreezeUnreachable, func(f *fleet) {
			f.members["m1"].up = false
			f.rest()
			f.change(func(set *v1beta1.UnitedDeployment) {
				set.Spec.Topology.Subsets = slices.Delete(set.Spec.Topology.Subsets, 1, 2)
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, tc.policy)
			f.rest()
			tc.before(f)
			f.rest()
			f.Now = f.Now.Add(time.Hour)
			f.rest()
			for _, at := range f.members {
				at.unknown = true
			}
			before := f.Set.Status
			if f.pass() {
				t.Errorf("it writes, and the status differs (-before +after):\n%s", cmp.Diff(before, f.Set.Status))
			}
			for _, at := range f.members {
				at.unknown, at.words = false, "in other words"
			}
			if f.pass() {
				t.Errorf("it writes when it knows, and the status differs (-before +after):\n%s", cmp.Diff(before, f.Set.Status))
			}
			if f.broken != "" {
				t.Error(f.broken)
			}
		})
	}
}

// TestAClusterThatIsConnectedTo keeps its share meanwhile: others do not take it over.
func TestAClusterThatIsConnectedTo(t *testing.T) {
	f := newFleet(t, v1beta1.FreezeUnreachable)
	s := f.look()
	s.Clusters[0].Reason, s.Clusters[0].Readable = connection.Connecting, false
	v, err := Classify(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := []int32{v.subsets[0].replicas, v.subsets[1].replicas, v.subsets[2].replicas}; !slices.Equal(got, []int32{3, 0, 3}) {
		t.Errorf("the subsets get %d", got)
	}
}
