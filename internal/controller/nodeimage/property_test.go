package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	ruleNode   = "the NodeImage of a node stays"
	ruleTag    = "a tag that a running job wants stays"
	ruleAnswer = "what a node has answered stays"
	ruleTime   = "a node has its time to answer"
)

// TestPromises runs the controllers in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(mistakes{}).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which a controller began to lead with a cache that was older than what the one before it had done.
func TestWhatBrokeOnceHolds(t *testing.T) { suite(mistakes{}).Again(t, 6219, 20340, 21113) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(mistakes{}).Repeat(t) }

// mistakes are what is done wrong on purpose.
type mistakes struct {
	inSnapshot func(*Snapshot)
	inPlan     func(*plan.Action)
	// cacheOnly has what a cache lacks count as gone.
	cacheOnly bool
}

// TestMistakesShow makes mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	deaf := suite(mistakes{})
	deaf.Mistake = promises.Mistake{IsDeaf: func(e simulate.Event) bool { _, is := e.New.(*corev1.Node); return is }}
	for name, tc := range map[string]struct {
		suite promises.Suite
		want  string
	}{
		"it takes jobs for gone":                 {suite(mistakes{inSnapshot: func(s *Snapshot) { s.Owners = nil }}), ruleTag},
		"it takes nodes for gone by their cache": {suite(mistakes{cacheOnly: true}), ruleNode},
		"it gives up on nodes early":             {suite(mistakes{inSnapshot: func(s *Snapshot) { s.Now = s.Now.Add(time.Minute) }}), ruleTime},
		"it gives up on nodes whatever they say": {suite(mistakes{inPlan: func(a *plan.Action) {
			a.AnyVersion = a.AnyVersion || a.Verb == plan.UpdateStatus
		}}), ruleAnswer},
		"it does not hear of nodes": {deaf, "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.suite.Break(t, tc.want)
		})
	}
}

// suite is both controllers, which may be mistaken, in clusters whose nodes come, go and fall silent.
func suite(wrong mistakes) promises.Suite {
	return promises.Suite{
		Scheme:  promises.Scheme(),
		Watched: []client.Object{&corev1.Node{}, &v1beta1.NodeImage{}, &v1beta1.ImagePullJob{}},
		Populate: func(w *promises.World) promises.Scenario {
			s := &scenario{promises.User{Cluster: w.Cluster, Rand: w.Rand}}
			for range 5 {
				s.addNode()
			}
			planner := promises.Planner[shown, Snapshot]{
				Plan: func(v Snapshot) plan.Plan {
					if wrong.inSnapshot != nil {
						wrong.inSnapshot(&v)
					}
					if wrong.inPlan != nil {
						return promises.Misplan(Plan, wrong.inPlan)(v)
					}
					return Plan(v)
				},
				Take: func(v shown) Snapshot { return v.whole }, Snapshot: func(v Snapshot) shown { return shown{v, v.Image, v.Node, v.Owners} },
			}
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					o := Options{CreationDelay: delay, Jobs: true, Sources: observe.NewSources(c.Live.Reader, c.Now)}
					upkeep := Kind(o)
					upkeep.Plan = planner.In(w)
					runtime := c.Runtime()
					if wrong.cacheOnly {
						runtime.Live = c.Cached
					}
					return both{promises.Start(CreationKind(o), runtime, c), promises.Start(upkeep, runtime, c)}
				},
				Act: s.act, Relent: func() {}, Others: []func() bool{s.answer}, Check: check, Converged: s.converged,
			}
		},
	}
}

// shown is what can be shown of a Snapshot as JSON.
type shown struct {
	whole  Snapshot
	Image  *v1beta1.NodeImage
	Node   *corev1.Node
	Owners map[types.UID]pull.OwnerState
}

// delay is how long a node must have been Ready before it gets a NodeImage.
const delay = 10 * time.Second

// both are the two controllers. A request names a node, or its NodeImage.
type both [2]*promises.Process

// Reconcile has both reconcile what they have of that name.
func (b both) Reconcile(ctx context.Context, r reconcile.Request) (out reconcile.Result, err error) {
	for _, one := range b {
		result, failed := one.Reconcile(ctx, r)
		err = errors.Join(err, failed)
		if wait := result.RequeueAfter; wait > 0 && (out.RequeueAfter == 0 || wait < out.RequeueAfter) {
			out = result
		}
	}
	return out, err
}

// Hear has both hear of an event.
func (b both) Hear(e simulate.Event, q *simulate.Queue) {
	for _, one := range b {
		one.Hear(e, q)
	}
}

// check returns the promises that the controllers have broken in a history. What happened since they looked excuses them.
func check(history []simulate.Change) []invariant.Violation {
	var out []invariant.Violation
	type since struct {
		revision int64
		object   client.Object
	}
	stands := map[simulate.Key]since{} // nodes that are there, and jobs that run
	for _, c := range history {
		if is := isStanding(c.After); !is {
			delete(stands, c.Key)
		} else if known, ok := stands[c.Key]; !ok || known.object.GetUID() != c.After.GetUID() {
			stands[c.Key] = since{c.Revision, c.After}
		}
		before, is := c.Before.(*v1beta1.NodeImage)
		if !is || c.Pass == nil || c.Late {
			continue
		}
		broken := func(rule, what string) {
			out = append(out, invariant.Violation{Rule: rule, Revision: c.Revision, Text: c.Key.Name + " " + what})
		}
		stood := func(key simulate.Key, uid types.UID) bool {
			known, ok := stands[key]
			return ok && known.revision <= c.Pass.Seen[key.Kind] && uid == known.object.GetUID()
		}
		after, _ := c.After.(*v1beta1.NodeImage)
		if before.DeletionTimestamp == nil && (after == nil || after.DeletionTimestamp != nil) {
			// That a node is gone is read live.
			if _, is := stands[simulate.Key{Kind: nodeKind, Name: c.Key.Name}]; is {
				broken(ruleNode, "")
			}
			continue
		}
		for repository, image := range before.Spec.Images {
			for i := range image.Tags {
				tag := &image.Tags[i]
				if hasTag(after, repository, tag.Tag) {
					judgeStatus(pull.StatusOf(before, repository, tag), pull.StatusOf(after, repository, tag), tag, c.Time, broken)
					continue
				}
				for _, owner := range tag.OwnerReferences {
					if stood(simulate.Key{Kind: jobKind, Namespace: owner.Namespace, Name: owner.Name}, owner.UID) {
						broken(ruleTag, tag.Tag)
					}
				}
			}
		}
	}
	return out
}

// judgeStatus judges what a controller has written about a round.
func judgeStatus(was, is *v1beta1.ImageTagStatus, tag *v1beta1.ImageTagSpec, now time.Time, broken func(rule, what string)) {
	switch {
	case is == nil || was != nil && was.Phase == is.Phase:
	case was != nil:
		broken(ruleAnswer, fmt.Sprintf("%s: %s became %s", tag.Tag, was.Phase, is.Phase))
	case now.Before(tag.CreatedAt.Add(pull.ResponseTimeout)):
		broken(ruleTime, tag.Tag)
	}
}

func isStanding(object client.Object) bool {
	switch o := object.(type) {
	case *corev1.Node:
		return o.DeletionTimestamp == nil
	case *v1beta1.ImagePullJob:
		return o.DeletionTimestamp == nil && o.Status.CompletionTime == nil
	default:
		return false
	}
}

func hasTag(n *v1beta1.NodeImage, repository, tag string) bool {
	return slices.ContainsFunc(n.Spec.Images[repository].Tags, func(t v1beta1.ImageTagSpec) bool { return t.Tag == tag })
}

var (
	nodeKind  = corev1.SchemeGroupVersion.WithKind("Node")
	imageKind = v1beta1.GroupVersion.WithKind("NodeImage")
	jobKind   = v1beta1.GroupVersion.WithKind("ImagePullJob")
)

// scenario is an administrator of nodes, their daemons, jobs that ask them for images, and users who do so themselves.
type scenario struct{ promises.User }

func (s *scenario) create(object client.Object) {
	_, _ = s.Cluster.Create(promises.UserActor, object) // the name may be taken
}

func (s *scenario) addNode() {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", s.Rand.Intn(5)), Labels: map[string]string{"zone": s.zone()}}}
	s.create(n)
	if stored, _ := s.Cluster.Get(s.Cluster.KeyOf(n)).(*corev1.Node); stored != nil {
		s.setReady(stored, corev1.ConditionTrue)
	}
}

func (s *scenario) zone() string { return fmt.Sprint("z", s.Rand.Intn(3)) }

func (s *scenario) setReady(n *corev1.Node, status corev1.ConditionStatus) {
	at := metav1.NewTime(s.Cluster.Now())
	simulate.Update(s.Cluster, "node controller", n, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: at}}
	})
}

// pick returns one of the objects of a kind; false if there are none.
func pick[T client.Object](s *scenario, objects []client.Object) (chosen T, ok bool) {
	if len(objects) == 0 {
		return chosen, false
	}
	return objects[s.Rand.Intn(len(objects))].(T), true
}

// act is what happens to nodes and jobs.
func (s *scenario) act() {
	node, hasNode := pick[*corev1.Node](s, s.Cluster.Of(nodeKind))
	image, hasImage := pick[*v1beta1.NodeImage](s, s.Cluster.Of(imageKind))
	job, hasJob := pick[*v1beta1.ImagePullJob](s, s.Cluster.Of(jobKind))
	switch n := s.Rand.Intn(100); {
	case n < 12 || !hasNode:
		s.addNode()
	case n < 18:
		s.Cluster.Delete(promises.UserActor, node)
	case n < 26:
		simulate.Update(s.Cluster, promises.UserActor, node, func(n *corev1.Node) { n.Labels = map[string]string{"zone": s.zone()} })
	case n < 32:
		s.setReady(node, []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue}[s.Rand.Intn(2)])
	case n < 40:
		s.create(&v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("job", s.Rand.Intn(4))}})
	case n < 46 && hasJob:
		s.Cluster.Delete(promises.UserActor, job)
	case n < 52 && hasJob:
		at := metav1.NewTime(s.Cluster.Now())
		simulate.Update(s.Cluster, "job controller", job, func(j *v1beta1.ImagePullJob) { j.Status.CompletionTime = &at })
	case n < 55:
		s.Cluster.Sleep(4 * time.Minute)
	case n < 60 && hasImage:
		s.Cluster.Delete(promises.UserActor, image)
	case n < 85 && hasImage && hasJob:
		s.ask(image, job)
	case hasImage:
		s.ask(image, nil)
	}
}

// ask has a job, or a user where it is nil, ask a node for an image.
func (s *scenario) ask(n *v1beta1.NodeImage, job *v1beta1.ImagePullJob) {
	at, ttl := metav1.NewTime(s.Cluster.Now().Truncate(time.Second)), int32(s.Rand.Intn(300))
	tag := v1beta1.ImageTagSpec{Tag: fmt.Sprint("v", s.Rand.Intn(4)), CreatedAt: &at, PullPolicy: &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: &ttl}}
	if job != nil {
		tag.OwnerReferences = []corev1.ObjectReference{{Kind: "ImagePullJob", Namespace: job.Namespace, Name: job.Name, UID: job.UID}}
	}
	simulate.Update(s.Cluster, promises.UserActor, n, func(n *v1beta1.NodeImage) {
		if hasTag(n, "nginx", tag.Tag) {
			return
		}
		image := n.Spec.Images["nginx"]
		tag.Version = n.Generation
		image.Tags = append(image.Tags, tag)
		n.Spec.Images = map[string]v1beta1.ImageSpec{"nginx": image}
	})
}

// answer is a daemon that ends a pull, and reports whether there was one; those of two nodes are silent.
func (s *scenario) answer() bool {
	for _, object := range s.Cluster.Of(imageKind) {
		n := object.(*v1beta1.NodeImage)
		if n.Name == "n0" || n.Name == "n1" || n.DeletionTimestamp != nil {
			continue
		}
		var tags []v1beta1.ImageTagStatus
		news := false
		for i := range n.Spec.Images["nginx"].Tags {
			tag := &n.Spec.Images["nginx"].Tags[i]
			status := pull.StatusOf(n, "nginx", tag)
			if status == nil && !news {
				at := metav1.NewTime(s.Cluster.Now().Truncate(time.Second))
				status = &v1beta1.ImageTagStatus{Tag: tag.Tag, Version: tag.Version, Phase: v1beta1.ImagePhaseSucceeded, CompletionTime: &at}
				news = true
			}
			if status != nil {
				tags = append(tags, *status)
			}
		}
		if news {
			simulate.Update(s.Cluster, "daemon", n, func(n *v1beta1.NodeImage) {
				n.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"nginx": {Tags: tags}}
			})
			return true
		}
	}
	return false
}

// converged returns what is wrong, now that the cluster is at rest.
func (s *scenario) converged() (problems []string) {
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("at rest, "+format, args...))
	}
	for _, object := range s.Cluster.Of(nodeKind) {
		node := object.(*corev1.Node)
		image, _ := s.Cluster.Get(simulate.Key{Kind: imageKind, Name: node.Name}).(*v1beta1.NodeImage)
		_, ready := pull.ReadySince(node)
		switch {
		case image == nil && ready:
			wrong("%s is ready and has no NodeImage", node.Name)
		case image != nil && !maps.Equal(image.Labels, node.Labels):
			wrong("the labels of %s are %v, and those of its NodeImage %v", node.Name, node.Labels, image.Labels)
		}
	}
	for _, object := range s.Cluster.Of(imageKind) {
		n := object.(*v1beta1.NodeImage)
		if s.Cluster.Get(simulate.Key{Kind: nodeKind, Name: n.Name}) == nil {
			wrong("%s is there without its node", n.Name)
		}
		for i := range n.Spec.Images["nginx"].Tags {
			tag := &n.Spec.Images["nginx"].Tags[i]
			if status := pull.StatusOf(n, "nginx", tag); status == nil || status.CompletionTime == nil {
				wrong("the round of %s on %s has not ended", tag.Tag, n.Name)
			}
			running := slices.ContainsFunc(tag.OwnerReferences, func(r corev1.ObjectReference) bool {
				job := s.Cluster.Get(simulate.Key{Kind: jobKind, Namespace: r.Namespace, Name: r.Name})
				return isStanding(job) && job.GetUID() == r.UID
			})
			if !running {
				wrong("%s on %s has outlived its time", tag.Tag, n.Name)
			}
		}
	}
	return problems
}
