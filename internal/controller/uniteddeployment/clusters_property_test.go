package uniteddeployment

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	memberrules "github.com/seed-69ecc383/kruise/internal/rules/member"
)

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
