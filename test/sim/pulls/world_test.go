package pulls

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/controller/imagepulljob"
	"github.com/seed-69ecc383/kruise/internal/controller/nodeimage"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/node/pull"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// world is a cluster of nodes with a job.
type world struct {
	*testing.T
	*promises.World
	began time.Time
	// takes is how long a pull takes, by image; those that are not there take 20 s.
	takes map[string]time.Duration
	// dark are the nodes whose daemon is stopped.
	dark map[string]bool
	// slots is the number of images that a daemon pulls at the same time; less than 1 for no limit.
	slots int
	// ofJobs and ofImages receive the events of the two controllers.
	ofJobs, ofImages *record.FakeRecorder
}

// process is both controllers: jobs are in namespaces, NodeImages are not.
type process struct {
	promises.Process
	images reconcile.Reconciler
}

func (p *process) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if request.Namespace == "" {
		return p.images.Reconcile(ctx, request)
	}
	return p.Process.Reconcile(ctx, request)
}

func newWorld(t *testing.T, nodes int, jobs ...string) *world {
	t.Helper()
	w := &world{T: t, takes: map[string]time.Duration{}, dark: map[string]bool{}, ofJobs: record.NewFakeRecorder(1000), ofImages: record.NewFakeRecorder(1000)}
	suite := promises.Suite{
		Scheme:  promises.Scheme(),
		Watched: []client.Object{&v1beta1.ImagePullJob{}, &v1beta1.NodeImage{}, &corev1.Node{}, &corev1.Pod{}, &corev1.Secret{}},
		Populate: func(in *promises.World) promises.Scenario {
			w.World, w.began = in, in.Cluster.Now()
			for i := range nodes {
				w.addNode(fmt.Sprint("n", i))
			}
			for _, text := range jobs {
				w.create(text)
			}
			return promises.Scenario{Start: w.start, Act: func() {}, Others: []func() bool{w.daemons}}
		},
	}
	suite.World(0)
	w.Rig.Turmoil(t.Context(), 0) // it starts, and nothing goes wrong
	return w
}

func (w *world) start(c promises.Connection) simulate.Process {
	with := func(r record.EventRecorder) *apply.Executor {
		e := &apply.Executor{Config: c.Executor.Config}
		e.Events = r
		return e
	}
	runtime := func(r record.EventRecorder) loop.Runtime {
		return loop.Runtime{Executor: with(r), Live: c.Live, Workers: 1}
	}
	jobs := promises.Start(imagepulljob.Kind(imagepulljob.Options{
		Sources: observe.NewSources(c.Live.Reader, c.Now), Seal: plainly, SystemNamespace: "system", Extra: 300 * time.Second,
	}), runtime(w.ofJobs), c)
	images := promises.Start(nodeimage.Kind(nodeimage.Options{
		Jobs: true, ConfigNamespace: "config", Sources: observe.NewSources(c.Live.Reader, c.Now), Seal: plainly,
	}), runtime(w.ofImages), c)
	jobs.Ears = append(jobs.Ears, images.Ears...)
	return &process{Process: *jobs, images: images.Reconciler}
}

func (w *world) store(object client.Object) client.Object {
	w.Helper()
	stored, err := w.Cluster.Create(promises.UserActor, object)
	if err != nil {
		w.Fatal(err)
	}
	return stored
}

// addNode makes a node that is Ready, and its NodeImage.
func (w *world) addNode(name string) {
	w.Helper()
	node := w.store(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}).(*corev1.Node)
	w.setReady(node, corev1.ConditionTrue)
	w.store(&v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func (w *world) setReady(node *corev1.Node, status corev1.ConditionStatus) {
	simulate.Update(w.Cluster, promises.UserActor, node, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	})
}

// create makes a job out of its name and the fields of its spec, as YAML.
func (w *world) create(text string) {
	w.Helper()
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job"}}
	if err := yaml.UnmarshalStrict([]byte(text), &job.Spec); err != nil {
		w.Fatal(err)
	}
	w.store(job)
}

func (w *world) job() *v1beta1.ImagePullJob {
	w.Helper()
	job, ok := w.Cluster.Get(simulate.Key{Kind: v1beta1.GroupVersion.WithKind("ImagePullJob"), Namespace: "ns", Name: "job"}).(*v1beta1.ImagePullJob)
	if !ok {
		w.Fatal("the job is gone")
	}
	return job
}

func (w *world) image(node string) *v1beta1.NodeImage {
	w.Helper()
	n, ok := w.Cluster.Get(simulate.Key{Kind: v1beta1.GroupVersion.WithKind("NodeImage"), Name: node}).(*v1beta1.NodeImage)
	if !ok {
		w.Fatalf("NodeImage %s is gone", node)
	}
	return n
}

// says returns what a node says of a tag.
func (w *world) says(node, repository, tag string) v1beta1.ImageTagStatus {
	w.Helper()
	for _, s := range w.image(node).Status.ImageStatuses[repository].Tags {
		if s.Tag == tag {
			return s
		}
	}
	return v1beta1.ImageTagStatus{}
}

// since returns how long after the beginning something was.
func (w *world) since(at *metav1.Time) time.Duration {
	if at == nil {
		return 0
	}
	return at.Sub(w.began)
}

// run lets time pass, in steps in each of which all that is due happens.
func (w *world) run(duration, step time.Duration) {
	w.Helper()
	for end := w.Cluster.Now().Add(duration); ; w.Cluster.Sleep(step) {
		if err := w.Rig.Settle(w.Context(), 0); err != nil {
			w.Fatal(err)
		}
		if !w.Cluster.Now().Before(end) {
			return
		}
	}
}

// daemons answer on all nodes but those that are dark, as the daemons of real nodes decide it, and report whether there was anything to say.
func (w *world) daemons() bool {
	for _, object := range w.Cluster.Of(v1beta1.GroupVersion.WithKind("NodeImage")) {
		n := object.(*v1beta1.NodeImage)
		if w.dark[n.Name] {
			continue
		}
		seen := map[pull.Round]v1beta1.ImageTagStatus{}
		pulling := 0
		for _, task := range pull.Due(n) {
			seen[task.Round] = w.progress(task, &pulling)
		}
		said := pull.Report(n, seen)
		changed := false
		simulate.Update(w.Cluster, "daemon", n, func(n *v1beta1.NodeImage) {
			changed = fmt.Sprint(n.Status) != fmt.Sprint(said)
			n.Status = said
		})
		if changed {
			return true
		}
	}
	return false
}

// progress is how far a round has come. One that has begun keeps its slot.
func (w *world) progress(task pull.Task, pulling *int) v1beta1.ImageTagStatus {
	s := v1beta1.ImageTagStatus{Tag: task.Tag, Version: task.Version, Phase: v1beta1.ImagePhaseWaiting}
	if task.Began.IsZero() && w.slots > 0 && *pulling >= w.slots {
		return s
	}
	*pulling++
	now := metav1.NewTime(w.Cluster.Now())
	s.Phase, s.StartTime = v1beta1.ImagePhasePulling, &now
	if !task.Began.IsZero() {
		s.StartTime = &metav1.Time{Time: task.Began}
	}
	takes, ok := w.takes[task.Image()]
	if !ok {
		takes = 20 * time.Second
	}
	if now.Sub(s.StartTime.Time) >= takes {
		s.Phase, s.CompletionTime, s.Progress = v1beta1.ImagePhaseSucceeded, &now, 100
	}
	return s
}

// told returns the events of a recorder that contain a text.
func told(r *record.FakeRecorder, text string) (found []string) {
	for {
		select {
		case e := <-r.Events:
			if strings.Contains(e, text) {
				found = append(found, e)
			}
		default:
			slices.Sort(found)
			return found
		}
	}
}

// plainly seals nothing, so that runs repeat.
func plainly(_, text []byte, _ string) ([]byte, error) { return text, nil }
