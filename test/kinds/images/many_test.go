package images

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/audit"
)

// watched is what a test has seen of its nodes.
type watched struct {
	mu sync.Mutex
	// pulling are the nodes that have been asked and have not ended, by image; most is the most there ever were.
	pulling map[string]map[string]bool
	most    map[string]int
	// rounds are the versions that were asked for, by node and image.
	rounds map[string]map[int64]bool
}

// watchNodes follows the NodeImages of the test until stop is called.
func (e *env) watchNodes() (w *watched, stop func()) {
	e.Helper()
	w = newWatched()
	end, err := e.Follow(e.Ctx, &v1beta1.NodeImageList{}, "", func(event watch.Event) {
		if image, ok := event.Object.(*v1beta1.NodeImage); ok && image.Labels[pool] == e.Namespace {
			w.see(image)
		}
	})
	e.Must(err)
	return w, func() { e.Must(end()) }
}

// pollNodes looks at the NodeImages of the test again and again until stop is called: a watch may end with what its manager served.
func (e *env) pollNodes() (w *watched, stop func()) {
	e.Helper()
	w = newWatched()
	ctx, cancel := context.WithCancel(e.Ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			var all v1beta1.NodeImageList
			// One that fails is followed by the next.
			if err := e.Client.List(ctx, &all, client.MatchingLabels{pool: e.Namespace}); err == nil {
				w.seeAll(all.Items)
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	return w, func() {
		cancel()
		running.Wait()
	}
}

func newWatched() *watched {
	return &watched{pulling: map[string]map[string]bool{}, most: map[string]int{}, rounds: map[string]map[int64]bool{}}
}

// seeAll sees all nodes as they were at one moment: one after the other they would be compared with what the others were before.
func (w *watched) seeAll(nodes []v1beta1.NodeImage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.pulling)
	for i := range nodes {
		w.note(&nodes[i])
	}
}

func (w *watched) see(n *v1beta1.NodeImage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, nodes := range w.pulling {
		delete(nodes, n.Name)
	}
	w.note(n)
}

func (w *watched) note(n *v1beta1.NodeImage) {
	for repository, image := range n.Spec.Images {
		for _, tag := range image.Tags {
			name := repository + ":" + tag.Tag
			key := n.Name + "/" + name
			if w.rounds[key] == nil {
				w.rounds[key] = map[int64]bool{}
			}
			w.rounds[key][tag.Version] = true
			if w.pulling[name] == nil {
				w.pulling[name] = map[string]bool{}
			}
			ended := false
			for _, status := range n.Status.ImageStatuses[repository].Tags {
				ended = ended || status.Tag == tag.Tag && status.Version == tag.Version && status.CompletionTime != nil
			}
			if !ended {
				w.pulling[name][n.Name] = true
			}
			w.most[name] = max(w.most[name], len(w.pulling[name]))
		}
	}
}

// asked is what the manager has asked of the API server since a moment.
func (e *env) asked(since time.Time) audit.Requests {
	e.Helper()
	requests, err := audit.Read(shared.AuditLog(), audit.Query{Agent: "kruise-manager", From: since})
	e.Must(err)
	return requests
}

// TestManyNodes: a job on many nodes keeps its parallelism, asks every node once, and by one write each. When nothing is left to do, nothing is
// written.
func TestManyNodes(t *testing.T) {
	e := newSerialEnv(t, *fleet)
	limit := max(10, *fleet/10)
	seen, stop := e.watchNodes()
	begin, cpu := time.Now(), e.ManagerSeconds()
	e.pull("job", "nginx:many", fmt.Sprintf("parallelism: %d", limit))
	job := e.completed("job")
	took, used := time.Since(begin), e.ManagerSeconds()-cpu
	stop()
	if job.Status.Succeeded != int32(*fleet) {
		t.Errorf("status is %+v", job.Status)
	}
	if got := seen.most["nginx:many"]; got > limit {
		t.Errorf("%d nodes pulled at the same time, parallelism is %d", got, limit)
	}
	for key, rounds := range seen.rounds {
		if len(rounds) != 1 {
			t.Errorf("%s was asked for the rounds %v", key, rounds)
		}
	}
	requests := e.asked(begin)
	patches, statuses := requests.Counts["patch nodeimages 200"], requests.Counts["patch imagepulljobs/status 200"]
	t.Logf("%d nodes, parallelism %d: %s, manager %.2f s of CPU, %d writes of NodeImages, %d of the job's status, %v", *fleet, limit, took, used, patches, statuses, requests.Counts)
	if patches != *fleet {
		t.Errorf("the manager wrote NodeImages %d times, want %d", patches, *fleet)
	}
	if most := 20 + int(took/time.Second) + 2; statuses > most {
		t.Errorf("the manager wrote the status of the job %d times, want %d at most", statuses, most)
	}
	e.Eventually("the manager writes nothing for two seconds", func() error {
		rest := time.Now()
		time.Sleep(2 * time.Second)
		if requests := e.asked(rest); requests.Writes() > 0 {
			return fmt.Errorf("it wrote %v", requests.Counts)
		}
		return nil
	})
}

// TestTwoJobsAtTheSameMoment: neither loses what the other one wrote.
func TestTwoJobsAtTheSameMoment(t *testing.T) {
	e := newSerialEnv(t, 0)
	e.borrow(min(*fleet, 50))
	begin := time.Now()
	more := fmt.Sprintf("parallelism: %d", len(e.Nodes))
	e.pull("one", "nginx:same-moment", more)
	e.pull("two", "redis:same-moment", more)
	for _, name := range []string{"one", "two"} {
		if status := e.completed(name).Status; status.Succeeded != int32(len(e.Nodes)) {
			t.Errorf("job %s: %+v", name, status)
		}
	}
	for _, node := range e.Nodes {
		if len(e.tags(node, "nginx")) != 1 || len(e.tags(node, "redis")) != 1 {
			t.Errorf("node %s is asked for %+v", node, e.nodeImage(node).Spec)
		}
	}
	requests := e.asked(begin)
	if patches := requests.Counts["patch nodeimages 200"]; patches > 2*len(e.Nodes) {
		t.Errorf("the manager wrote NodeImages %d times, want %d at most: %v", patches, 2*len(e.Nodes), requests.Counts)
	}
	t.Logf("%d nodes: %v", len(e.Nodes), requests.Counts)
}

// borrow takes the nodes of the tests of many nodes over from the test before.
func (e *env) borrow(count int) {
	e.Helper()
	for i := range count {
		name := fmt.Sprintf("sim-%d", i+1)
		e.EditNode(name, func(node *corev1.Node) { node.Labels[pool] = e.Namespace })
		e.Nodes = append(e.Nodes, name)
	}
	e.Eventually("the NodeImages have the labels of their nodes and list nothing", func() error {
		for _, name := range e.Nodes {
			if image := e.nodeImage(name); image.Labels[pool] != e.Namespace || len(image.Spec.Images) > 0 {
				return fmt.Errorf("NodeImage %s has labels %v, %+v", name, image.Labels, image.Spec)
			}
		}
		return nil
	})
}

// TestManagerIsKilledAgainAndAgain: no node is asked twice, none is forgotten, and no more pull at the same time than may.
func TestManagerIsKilledAgainAndAgain(t *testing.T) {
	e := newSerialEnv(t, 0)
	e.borrow(min(*fleet, 40))
	seen, stop := e.pollNodes()
	e.pull("job", "nginx:killed", "parallelism: 5")
	e.pullList("list", "[redis:killed, busybox:killed]", "parallelism: 5")
	for range 4 {
		time.Sleep(1500 * time.Millisecond)
		e.CrashManager()
	}
	if status := e.completed("job").Status; status.Succeeded != int32(len(e.Nodes)) {
		t.Errorf("status is %+v", status)
	}
	e.Eventually("the list is over", func() error {
		if status := e.list("list").Status; status.CompletionTime == nil || status.Succeeded != 2 {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	})
	stop()
	for image, most := range seen.most {
		if most > 5 {
			t.Errorf("%d nodes pulled %s at the same time, parallelism is 5", most, image)
		}
	}
	for key, rounds := range seen.rounds {
		if len(rounds) != 1 {
			t.Errorf("%s was asked for the rounds %v", key, rounds)
		}
	}
	if children := e.children("list"); len(children) != 2 {
		t.Errorf("the list has %d jobs", len(children))
	}
}

func TestNodeImageThatIsFull(t *testing.T) {
	e := newEnv(t, 2)
	tags := ""
	for i := range v1beta1.MaxNodeImages {
		tags += fmt.Sprintf(`,"repository-%d":{"tags":[{"tag":"1","pullPolicy":{"ttlSecondsAfterFinished":600}}]}`, i)
	}
	e.Must(e.Client.Patch(e.Ctx, e.nodeImage(e.Nodes[0]), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"images":{`+tags[1:]+`}}}`))))
	begin := time.Now()
	e.pull("job", "nginx:full", "parallelism: 2")
	status := e.completed("job").Status
	want := "job has completed; NodeImages that can list no more images, or no more of this namespace: " + e.Nodes[0]
	if status.Succeeded != 1 || status.Failed != 1 || status.FailedNodes[0] != e.Nodes[0] || status.Message != want {
		t.Errorf("status is %+v", status)
	}
	if requests := e.asked(begin); requests.Counts["patch nodeimages 422"] > 0 {
		t.Errorf("the manager tried in vain: %v", requests.Counts)
	}
}
