package imagelistpulljob

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	ruleOneJob    = "one job for an image"
	ruleNotWanted = "a job that is wanted stays"
	ruleOver      = "a list that is over makes no more jobs"
)

// foreign is the name of a job that no list made.
const foreign = "foreign"

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestMistakesShow makes mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	doubling := suite(func(v State) plan.Plan {
		p := Plan(v)
		for _, a := range p.Actions() {
			if a.Verb == plan.Create {
				a.After.SetName(fmt.Sprint(a.After.GetName(), "-", v.Now.UnixNano()))
			}
		}
		return p
	})
	doubling.Mistake = promises.Mistake{TrustsCache: true}
	deaf := suite(Plan)
	deaf.Mistake = promises.Mistake{IsDeaf: func(e simulate.Event) bool { _, is := e.New.(*v1beta1.ImagePullJob); return is }}
	for name, tc := range map[string]struct {
		suite promises.Suite
		want  string
	}{
		"it trusts a cache that is behind, and gives jobs new names": {doubling, ruleOneJob},
		"it takes jobs of others for its own": {suite(promises.Misplan(Plan, func(a *plan.Action) {
			if job, is := a.Before.(*v1beta1.ImagePullJob); is && a.Verb == plan.Delete {
				job = job.DeepCopy()
				job.Name, job.UID = foreign, ""
				a.Before = job
			}
		})), "at rest"},
		"it deletes what the list wants": {suite(func(v State) plan.Plan {
			for image, job := range v.jobs {
				if job.Status.Active > 0 {
					delete(v.jobs, image)
					v.unwanted = append(v.unwanted, job)
					break
				}
			}
			return Plan(v)
		}), ruleNotWanted},
		"it makes jobs for a list that is over": {suite(func(v State) plan.Plan {
			if v.List.Status.CompletionTime == nil {
				return Plan(v)
			}
			v.List, v.jobs = v.List.DeepCopy(), nil
			v.List.Status.CompletionTime = nil
			return Plan(v)
		}), ruleOver},
		"it forgets an image": {suite(func(v State) plan.Plan {
			if len(v.List.Spec.Images) > 1 {
				v.List = v.List.DeepCopy()
				v.List.Spec.Images = v.List.Spec.Images[1:]
			}
			return Plan(v)
		}), "at rest"},
		"it does not hear of its jobs": {deaf, "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.suite.Break(t, tc.want)
		})
	}
}

// suite is the controller, with a planner that may be mistaken, in clusters with one list, whose jobs come to their ends.
func suite(planned func(State) plan.Plan) promises.Suite {
	return promises.Suite{
		Scheme:  promises.Scheme(),
		Watched: []client.Object{&v1beta1.ImageListPullJob{}, &v1beta1.ImagePullJob{}},
		Populate: func(w *promises.World) promises.Scenario {
			s := newScenario(w)
			planner := promises.Planner[Snapshot, State]{Plan: planned, Take: Classify, Snapshot: func(v State) Snapshot { return v.Snapshot }}
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					if err := observe.AddControllerIndex(context.Background(), c.Cached.Reader.(client.FieldIndexer), &v1beta1.ImagePullJob{}); err != nil {
						panic(err)
					}
					k := Kind()
					k.Plan = planner.In(w)
					return promises.Start(k, c.Runtime(), c)
				},
				Act: s.act, Relent: func() {}, Others: []func() bool{s.work}, Check: check, Converged: s.converged,
			}
		},
	}
}

// check returns the promises that the controller has broken in a history.
func check(history []simulate.Change) []invariant.Violation {
	var out []invariant.Violation
	lists := map[types.UID][]simulate.Change{}
	seen := func(job *v1beta1.ImagePullJob, p *simulate.Pass) *v1beta1.ImageListPullJob {
		owner := metav1.GetControllerOfNoCopy(job)
		var last *v1beta1.ImageListPullJob
		for _, c := range lists[owner.UID] {
			if c.Revision <= p.Seen[listKind] {
				last, _ = c.After.(*v1beta1.ImageListPullJob)
			}
		}
		return last
	}
	jobs := map[string]*v1beta1.ImagePullJob{}
	for _, c := range history {
		if c.Key.Kind == listKind {
			of := cmp.Or(c.After, c.Before).GetUID()
			lists[of] = append(lists[of], c)
			continue
		}
		before, _ := c.Before.(*v1beta1.ImagePullJob)
		after, _ := c.After.(*v1beta1.ImagePullJob)
		broken := func(rule string) {
			out = append(out, invariant.Violation{Rule: rule, Revision: c.Revision, Text: c.Key.Name})
		}
		if c.Pass != nil && !c.Late {
			switch {
			case before == nil:
				if list := seen(after, c.Pass); list != nil && list.Status.CompletionTime != nil {
					broken(ruleOver)
				}
				for _, other := range jobs {
					if isSame(other, after) {
						broken(ruleOneJob)
					}
				}
			case before.DeletionTimestamp == nil && (after == nil || after.DeletionTimestamp != nil):
				if list := seen(before, c.Pass); list != nil && slices.Contains(list.Spec.Images, before.Spec.Image) && pull.IsChild(list, before) {
					broken(ruleNotWanted)
				}
			}
		}
		if jobs[c.Key.Name] = after; after == nil {
			delete(jobs, c.Key.Name)
		}
	}
	return out
}

// isSame reports whether two jobs are for the same image of the same list, made from the same.
func isSame(a, b *v1beta1.ImagePullJob) bool {
	owner := metav1.GetControllerOfNoCopy(a)
	return owner != nil && metav1.IsControlledBy(b, &metav1.ObjectMeta{UID: owner.UID}) && a.Spec.Image == b.Spec.Image &&
		a.Labels[appsv1.ControllerRevisionHashLabelKey] == b.Labels[appsv1.ControllerRevisionHashLabelKey]
}

var (
	listKind = v1beta1.GroupVersion.WithKind("ImageListPullJob")
	jobKind  = v1beta1.GroupVersion.WithKind("ImagePullJob")
)

// scenario is a user with a list, and the controller of its jobs.
type scenario struct{ promises.User }

func newScenario(w *promises.World) *scenario {
	s := &scenario{User: promises.User{Cluster: w.Cluster, Rand: w.Rand}}
	s.create(&v1beta1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: foreign}, Spec: v1beta1.ImagePullJobSpec{Image: "nginx:0"},
	})
	s.addList()
	return s
}

func (s *scenario) create(object client.Object) {
	_, _ = s.Cluster.Create(promises.UserActor, object) // the name may be taken
}

func (s *scenario) addList() {
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "list"}}
	list.Spec.Images = s.images()
	list.Spec.CompletionPolicy.Type = v1beta1.AlwaysComplete
	switch n := s.Rand.Intn(10); {
	case n < 3:
		list.Spec.CompletionPolicy.Type = v1beta1.NeverComplete
	case n < 6:
		list.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(s.Rand.Intn(60)))
	}
	s.create(list)
}

func (s *scenario) images() []string {
	var out []string
	for i := range 4 {
		if s.Chance(50) {
			out = append(out, fmt.Sprint("nginx:", i))
		}
	}
	if out == nil {
		out = []string{"redis:1"}
	}
	return out
}

func (s *scenario) list() *v1beta1.ImageListPullJob {
	list, _ := s.Cluster.Get(simulate.Key{Kind: listKind, Namespace: "default", Name: "list"}).(*v1beta1.ImageListPullJob)
	return list
}

func (s *scenario) jobs() []*v1beta1.ImagePullJob {
	var out []*v1beta1.ImagePullJob
	for _, object := range s.Cluster.Of(jobKind) {
		out = append(out, object.(*v1beta1.ImagePullJob))
	}
	return out
}

// act is what users do.
func (s *scenario) act() {
	list := s.list()
	if list == nil {
		s.addList()
		return
	}
	switch n := s.Rand.Intn(100); {
	case n < 40:
		simulate.Update(s.Cluster, promises.UserActor, list, func(l *v1beta1.ImageListPullJob) { l.Spec.Images = s.images() })
	case n < 60:
		parallelism := intstr.FromInt32(int32(1 + s.Rand.Intn(3)))
		simulate.Update(s.Cluster, promises.UserActor, list, func(l *v1beta1.ImageListPullJob) { l.Spec.Parallelism = &parallelism })
	case n < 85:
		jobs := s.jobs()
		if job := jobs[s.Rand.Intn(len(jobs))]; job.Name != foreign {
			s.Cluster.Delete(promises.UserActor, job)
		}
	default:
		s.Cluster.Delete(promises.UserActor, list)
	}
}

// work is the controller of the jobs: it takes one of them further, and reports whether there was one.
func (s *scenario) work() bool {
	for _, job := range s.jobs() {
		repeats := pull.Repeats(job)
		if job.DeletionTimestamp != nil || job.Status.CompletionTime != nil || repeats && job.Status.Desired > 0 && job.Status.Active == 0 {
			continue
		}
		now := metav1.NewTime(s.Cluster.Now())
		simulate.Update(s.Cluster, "job controller", job, func(j *v1beta1.ImagePullJob) {
			switch {
			case j.Status.StartTime == nil:
				j.Status.StartTime, j.Status.Desired, j.Status.Active = &now, 2, 2
			case repeats:
				j.Status.Active, j.Status.Succeeded = 0, 2
			default:
				j.Status.Active, j.Status.Succeeded, j.Status.Failed, j.Status.CompletionTime = 0, 1, 1, &now
			}
		})
		return true
	}
	return false
}

// converged returns what is wrong, now that the cluster is at rest.
func (s *scenario) converged() (problems []string) {
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("at rest, "+format, args...))
	}
	if s.Cluster.Get(simulate.Key{Kind: jobKind, Namespace: "default", Name: foreign}) == nil {
		wrong("a job that is no list's is gone")
	}
	list := s.list()
	if list == nil {
		if n := len(s.jobs()); n > 1 {
			wrong("the list is gone, and %d jobs are there", n)
		}
		return problems
	}
	has := map[string]int{}
	for _, job := range s.jobs() {
		if metav1.IsControlledBy(job, list) {
			has[job.Spec.Image]++
			if !pull.IsChild(list, job) || !slices.Contains(list.Spec.Images, job.Spec.Image) {
				has["another"]++
			}
		}
	}
	policy, status := list.Spec.CompletionPolicy, list.Status
	switch {
	case status.CompletionTime != nil && policy.Type == v1beta1.NeverComplete:
		wrong("a list that repeats is over")
	case status.CompletionTime != nil && policy.TTLSecondsAfterFinished != nil:
		wrong("a list is over, and still there after its time to live")
	case status.CompletionTime == nil && policy.Type != v1beta1.NeverComplete:
		wrong("the list is not over: %+v", status)
	case status.CompletionTime == nil && (len(has) != len(list.Spec.Images) || has["another"] > 0 || int(status.Completed) != len(list.Spec.Images)):
		wrong("of the images %v there are jobs %v, and the status is %+v", list.Spec.Images, has, status)
	}
	return problems
}
