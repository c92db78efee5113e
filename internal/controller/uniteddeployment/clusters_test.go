package uniteddeployment

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

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
	name, id  string
	up, late  bool
	workloads []Workload
	saved     []Workload
	// restored means that it holds what the controller may have seen to be gone.
	restored bool
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
		c := Cluster{Place: p, Seen: memberrules.Seen{Reason: connection.Unreachable, Message: "no answer", ID: at.id}}
		if at.up {
			c.Reason, c.Message, c.LastContact = connection.Connected, "", f.Now
		}
		record := memberrules.Find(f.Set.Status.MemberClusters, p)
		if c.Readable = at.up && !at.late && memberrules.Judge(p, record, c.Seen).Ready(); c.Readable {
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

// TestClustersThatComeAndGo: members go away, come back, are replaced by others of their name, go back in time, lose writes and have caches that
// lag behind, while the user changes things. No cluster is written to before it is recorded, nor one that has taken the place of another, none
// is forgotten, and in the end all is as the user wants it, or nothing is left.
func TestClustersThatComeAndGo(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		if broken := comeAndGo(t, r, planOf); broken != "" {
			r.Fatal(broken)
		}
	})
}

func comeAndGo(t *testing.T, r *rapid.T, planned func(*State) plan.Plan) string {
	policy := rapid.SampledFrom([]v1beta1.UnreachablePolicyType{v1beta1.FreezeUnreachable, v1beta1.ReallocateUnreachable}).Draw(r, "policy")
	f := newFleet(t, policy)
	f.planned = planned
	f.lose = func() bool { return rapid.IntRange(0, 4).Draw(r, "lost") == 0 }
	for range rapid.IntRange(5, 40).Draw(r, "steps") {
		f.act(r)
		f.pass()
		f.Now = f.Now.Add(time.Duration(rapid.SampledFrom([]int{1, 1, 1, 400}).Draw(r, "seconds")) * time.Second)
		if f.broken != "" {
			return f.broken
		}
	}
	f.lose = func() bool { return false }
	for name := range f.members {
		f.back(name)
		f.members[name].up, f.members[name].late = true, false
	}
	f.rest()
	f.Now = f.Now.Add(time.Hour)
	f.rest()
	f.judge()
	if f.broken == "" {
		f.Set = f.Set.DeepCopy()
		f.Set.DeletionTimestamp = &metav1.Time{Time: f.Now}
		f.rest()
		left := len(f.members["m1"].workloads) + len(f.members["m2"].workloads)
		if isElsewhere(f.Set) || left > 0 && !f.members["m1"].restored && !f.members["m2"].restored {
			f.breaks("it was deleted, %d workloads are left in members, finalizers %s", left, f.Set.Finalizers)
		}
	}
	return f.broken
}

// act has something happen.
func (f *fleet) act(r *rapid.T) {
	name := rapid.SampledFrom([]string{"m1", "m2"}).Draw(r, "member")
	at := f.members[name]
	switch rapid.SampledFrom([]string{"run", "run", "up", "down", "late", "save", "restore", "replace", "back", "scale", "image", "subset"}).Draw(r, "event") {
	case "run":
		f.run()
	case "up":
		at.up, at.late = true, false
	case "down":
		at.up = false
	case "late":
		at.late = !at.late
	case "save":
		at.saved = slices.Clone(at.workloads)
	case "restore":
		if at.saved != nil {
			at.workloads, at.restored = slices.Clone(at.saved), true
		}
	case "replace":
		f.uids++
		f.away = append(f.away, at)
		f.members[name] = &site{name: name, id: fmt.Sprint(name, "-", f.uids), up: true}
	case "back":
		f.back(name)
	case "scale":
		f.scale(rapid.Int32Range(0, 12).Draw(r, "replicas"))
	case "image":
		f.change(func(set *v1beta1.UnitedDeployment) {
			set.Spec.Template.DeploymentTemplate.Spec.Template.Spec.Containers[0].Image = fmt.Sprint("app:", f.uids)
		})
	case "subset":
		f.change(func(set *v1beta1.UnitedDeployment) {
			all := &set.Spec.Topology.Subsets
			if i := slices.IndexFunc(*all, func(s v1beta1.Subset) bool { return s.TargetCluster != nil && s.TargetCluster.Name == name }); i >= 0 {
				*all = slices.Delete(slices.Clone(*all), i, i+1)
			} else {
				*all = append(*all, remoteSubset(map[string]string{"m1": "b", "m2": "c"}[name], name))
			}
		})
	}
}

// back has the cluster take its place again that is recorded.
func (f *fleet) back(name string) {
	record := memberrules.Find(f.Set.Status.MemberClusters, placeNamed(name))
	i := slices.IndexFunc(f.away, func(at *site) bool { return at.name == name && record != nil && at.id == record.ClusterID })
	if i >= 0 && f.members[name].id != record.ClusterID {
		f.members[name], f.away[i] = f.away[i], f.members[name]
	}
}

// judge says what is not as the user wants it, now that all clusters answer.
func (f *fleet) judge() {
	sum := int32(0)
	for i := range f.Set.Spec.Topology.Subsets {
		s := &f.Set.Spec.Topology.Subsets[i]
		in := f.Workloads
		if s.TargetCluster != nil {
			in = f.members[s.TargetCluster.Name].workloads
		}
		n := 0
		for _, w := range in {
			if w.Object.GetLabels()[keys.SubsetName] == s.Name {
				n++
				sum += *w.Object.(*appsv1.Deployment).Spec.Replicas
				if fieldsOf(w.Object).pods.Spec.Containers[0].Image != f.Set.Spec.Template.DeploymentTemplate.Spec.Template.Spec.Containers[0].Image {
					f.breaks("subset %s runs an old image", s.Name)
				}
			}
		}
		if n != 1 {
			f.breaks("subset %s has %d workloads", s.Name, n)
		}
	}
	want := valueOr(f.Set.Spec.Replicas, 1)
	s := &f.Set.Status
	if sum != want || s.Replicas != want || s.ReadyReplicas != want || s.UpdatedReadyReplicas != want {
		f.breaks("there are %d Pods, and the status tells of %d, %d ready, %d updated; want %d", sum, s.Replicas, s.ReadyReplicas, s.UpdatedReadyReplicas, want)
	}
	for _, c := range s.Conditions {
		if (c.Type == v1beta1.UnitedDeploymentClustersReady || c.Type == v1beta1.UnitedDeploymentUpdated) && c.Status != corev1.ConditionTrue &&
			len(wantedPlaces(f.Set)) > 0 {
			f.breaks("%s is %s: %s", c.Type, c.Status, c.Message)
		}
	}
}

// TestMistakesAboutClustersShow has the planner make mistakes on purpose: the checks of TestClustersThatComeAndGo must see each of them.
func TestMistakesAboutClustersShow(t *testing.T) {
	for name, tc := range map[string]struct {
		mistake func(*State)
		want    string
	}{
		"it writes before the cluster is recorded": {func(v *State) {
			v.Set = v.Set.DeepCopy()
			v.Set.Finalizers = []string{keys.MulticlusterCleanup}
			v.Set.Status.MemberClusters = v.records
		}, "before it is recorded"},
		"it follows a name to another cluster": {func(v *State) {
			v.Set = v.Set.DeepCopy()
			for i := range v.Clusters {
				if r := memberrules.Find(v.Set.Status.MemberClusters, v.Clusters[i].Place); r != nil {
					r.ClusterID, v.Clusters[i].Readable = v.Clusters[i].ID, true
				}
			}
			for _, one := range v.subsets {
				if one.elsewhere != nil {
					one.elsewhere.away = false
				}
			}
		}, "is written to, which"},
		"it forgets clusters that no subset is in": {func(v *State) {
			v.records = slices.DeleteFunc(v.records, func(r v1beta1.MemberCluster) bool { return r.Phase != v1beta1.MemberClusterActive })
		}, "is forgotten"},
		"it leaves what subsets had that are gone": {func(v *State) {
			v.surplus = slices.DeleteFunc(v.surplus, func(m *member) bool { return m.Cluster != "" })
		}, "left"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[string]bool{}
			for seed := range 400 {
				broken := ""
				rapid.Custom(func(r *rapid.T) int {
					broken = comeAndGo(t, r, func(v *State) plan.Plan {
						tc.mistake(v)
						return Plan(*v)
					})
					return 0
				}).Example(seed)
				if strings.Contains(broken, tc.want) {
					return
				}
				seen[broken] = true
			}
			t.Errorf("nobody sees it: %v", seen)
		})
	}
}
