package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/fakecri"
)

// site is a node with a runtime and a daemon.
type site struct {
	*testing.T
	node    string
	runtime *fakecri.Runtime
	socket  string
	dir     string
	daemon  *cluster.Daemon
}

// newSite makes a node, and lets its runtime serve; the daemon is not started yet. The test runs beside others.
func newSite(t *testing.T, name string) *site {
	t.Helper()
	t.Parallel()
	node(t, name)
	dir, err := os.MkdirTemp("", "kd-") // not the test's own: a socket's path must be short
	must(t, err)
	s := &site{T: t, node: name, runtime: fakecri.New(), socket: filepath.Join(dir, "c.sock"), dir: dir}
	t.Cleanup(func() {
		if s.daemon != nil {
			s.daemon.Stop()
			if t.Failed() {
				t.Log(s.daemon.Tail(30))
			}
		}
		_ = os.RemoveAll(dir) // of a test's own folder nothing is lost
	})
	image := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: name}}
	must(t, shared.Client.Create(t.Context(), image))
	t.Cleanup(func() { must(t, shared.Client.Delete(context.Background(), image)) })
	return s
}

func (s *site) serve() {
	s.Helper()
	must(s.T, s.runtime.Serve(s.socket))
}

func (s *site) start(args ...string) {
	s.Helper()
	daemon, err := shared.StartDaemon(s.Context(), cluster.DaemonOptions{Node: s.node, Socket: s.socket, Dir: s.dir, Args: args})
	must(s.T, err)
	s.daemon = daemon
}

func (s *site) ready() {
	s.Helper()
	eventually(s.T, "the daemon is ready", func() error {
		if code := s.daemon.Answers(s.Context(), "/readyz"); code != http.StatusOK {
			return fmt.Errorf("it answers %d", code)
		}
		return nil
	})
}

// tag returns a tag to pull, with quick attempts.
func tag(name string, change ...func(*v1beta1.ImageTagSpec)) v1beta1.ImageTagSpec {
	t := v1beta1.ImageTagSpec{
		Tag: name, CreatedAt: &metav1.Time{Time: time.Now()}, ImagePullPolicy: v1beta1.PullIfNotPresent,
		PullPolicy: &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: ptr.To[int32](600), TimeoutSeconds: ptr.To[int32](30), BackoffLimit: ptr.To[int32](1)},
	}
	for _, f := range change {
		f(&t)
	}
	return t
}

// want writes what the node is to pull.
func (s *site) want(images map[string]v1beta1.ImageSpec) {
	s.Helper()
	image := s.nodeImage()
	before := image.DeepCopy()
	image.Spec.Images = images
	must(s.T, shared.Client.Patch(s.Context(), image, client.MergeFrom(before)))
}

func (s *site) nodeImage() *v1beta1.NodeImage {
	s.Helper()
	image := &v1beta1.NodeImage{}
	must(s.T, shared.Client.Get(s.Context(), client.ObjectKey{Name: s.node}, image))
	return image
}

// phases waits until the status tells of each image what is wanted, by reference: "nginx:1": "Succeeded".
func (s *site) phases(want map[string]v1beta1.ImagePullPhase) *v1beta1.NodeImage {
	s.Helper()
	var image *v1beta1.NodeImage
	eventually(s.T, "the NodeImage tells so", func() error {
		image = s.nodeImage()
		got := map[string]v1beta1.ImagePullPhase{}
		for repository, status := range image.Status.ImageStatuses {
			for _, tag := range status.Tags {
				got[repository+":"+tag.Tag] = tag.Phase
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	return image
}

// pulled returns the images that the runtime was asked to pull.
func (s *site) pulled() []string {
	var out []string
	for _, request := range s.runtime.Pulls() {
		out = append(out, request.Image.Image)
	}
	return out
}

func (s *site) expectPulled(want ...string) {
	s.Helper()
	if diff := cmp.Diff(want, s.pulled()); diff != "" {
		s.Errorf("pulled (-want +got):\n%s", diff)
	}
}

func TestReadiness(t *testing.T) {
	s := newSite(t, "late")
	s.start()
	eventually(t, "the daemon lives", func() error {
		if code := s.daemon.Answers(t.Context(), "/healthz"); code != http.StatusOK {
			return fmt.Errorf("it answers %d", code)
		}
		return nil
	})
	if code := s.daemon.Answers(t.Context(), "/readyz"); code != http.StatusInternalServerError {
		t.Errorf("without a runtime the daemon answers %d, want that it is not ready", code)
	}
	s.want(map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{tag("1")}}})
	s.serve()
	served := time.Now()
	s.ready()
	if took := time.Since(served); took > 40*time.Second {
		t.Errorf("it was ready %s after there was a runtime, want it to look at short intervals", took)
	}
	s.phases(map[string]v1beta1.ImagePullPhase{"nginx:1": v1beta1.ImagePhaseSucceeded})
	s.expectPulled("nginx:1")
}

func TestPull(t *testing.T) {
	s := newSite(t, "puller")
	s.runtime.AddImage("nginx:there")
	s.runtime.OnPull = func(_ context.Context, request *runtimeapi.PullImageRequest) error {
		if strings.HasPrefix(request.Image.Image, "bad") {
			return errors.New("manifest unknown: no such tag")
		}
		return nil
	}
	s.serve()
	s.start()
	s.want(map[string]v1beta1.ImageSpec{
		"nginx": {Tags: []v1beta1.ImageTagSpec{tag("1"), tag("there")}, SandboxConfig: &v1beta1.SandboxConfig{Annotations: map[string]string{"a": "b"}}},
		"bad":   {Tags: []v1beta1.ImageTagSpec{tag("1", owned("job-1"))}},
		"r.io/digest": {Tags: []v1beta1.ImageTagSpec{
			tag("sha256:0000000000000000000000000000000000000000000000000000000000000000"),
		}},
	})
	image := s.phases(map[string]v1beta1.ImagePullPhase{
		"nginx:1": v1beta1.ImagePhaseSucceeded, "nginx:there": v1beta1.ImagePhaseSucceeded, "bad:1": v1beta1.ImagePhaseFailed,
		"r.io/digest:sha256:0000000000000000000000000000000000000000000000000000000000000000": v1beta1.ImagePhaseSucceeded,
	})
	count := map[string]int{}
	for _, request := range s.runtime.Pulls() {
		count[request.Image.Image]++
		if by := request.SandboxConfig.Annotations["apps.kruise.io/pulling-image-by"]; by != "kruise-daemon" {
			t.Errorf("%s is pulled by %q", request.Image.Image, by)
		}
		if request.Image.Image == "nginx:1" && request.SandboxConfig.Annotations["a"] != "b" {
			t.Errorf("the annotations of the sandbox are %v, want a of the spec", request.SandboxConfig.Annotations)
		}
	}
	wanted := map[string]int{"nginx:1": 1, "bad:1": 2, "r.io/digest@sha256:0000000000000000000000000000000000000000000000000000000000000000": 1}
	if diff := cmp.Diff(wanted, count); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	got := image.Status
	if got.Desired != 4 || got.Succeeded != 3 || got.Failed != 1 || got.Pulling != 0 || got.Waiting != 0 {
		t.Errorf("the numbers are %+v", got)
	}
	bad, good := got.ImageStatuses["bad"].Tags[0], got.ImageStatuses["nginx"].Tags[0]
	if !strings.Contains(bad.Message, "manifest unknown: no such tag") || bad.CompletionTime == nil {
		t.Errorf("the failed tag says %+v, want what the registry said", bad)
	}
	if !strings.HasPrefix(good.ImageID, "nginx@sha256:") || good.Progress != 100 || good.StartTime == nil {
		t.Errorf("the good tag says %+v", good)
	}
	s.expectEvent("ImagePullJob", "job-1", "PullImageFailed")
	s.expectEvent("NodeImage", s.node, "PullImageFailed")
	s.expectEvent("NodeImage", s.node, "PullImageSucceed")
}

// TestFewWrites: images that are there cost one write together, one that is pulled two, and what is at rest none.
func TestFewWrites(t *testing.T) {
	s := newSite(t, "thrifty")
	s.runtime.AddImage("nginx:1")
	s.runtime.AddImage("nginx:2")
	s.runtime.OnPull = func(context.Context, *runtimeapi.PullImageRequest) error {
		time.Sleep(time.Second)
		return nil
	}
	s.serve()
	s.start()
	s.ready()
	eventually(t, "the daemon tells of its key", func() error { // this is a write, too, and may come after the daemon is ready
		if len(s.nodeImage().Status.CredentialsKey) == 0 {
			return errors.New("it has not")
		}
		return nil
	})
	var mu sync.Mutex
	writes := 0
	stop, err := shared.Follow(t.Context(), &v1beta1.NodeImageList{}, "", func(e watch.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Type == watch.Modified && e.Object.(*v1beta1.NodeImage).Name == s.node {
			writes++
		}
	})
	must(t, err)
	s.want(map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{tag("1"), tag("2")}}})
	s.phases(map[string]v1beta1.ImagePullPhase{"nginx:1": v1beta1.ImagePhaseSucceeded, "nginx:2": v1beta1.ImagePhaseSucceeded})
	s.want(map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{tag("1"), tag("3")}}})
	s.phases(map[string]v1beta1.ImagePullPhase{"nginx:1": v1beta1.ImagePhaseSucceeded, "nginx:3": v1beta1.ImagePhaseSucceeded})
	time.Sleep(3 * time.Second) // longer than a report may be held back
	must(t, stop())
	if want := 2 + 1 + 2; writes != want { // the test's own, and the daemon's
		t.Errorf("the NodeImage was written %d times, want %d", writes, want)
	}
}

func owned(job string) func(*v1beta1.ImageTagSpec) {
	return func(t *v1beta1.ImageTagSpec) {
		t.OwnerReferences = []corev1.ObjectReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "ImagePullJob", Namespace: "default", Name: job, UID: "u"}}
	}
}

func (s *site) expectEvent(kind, name, reason string) {
	s.Helper()
	eventually(s.T, "there is event "+reason+" of "+kind+" "+name, func() error {
		var events corev1.EventList
		if err := shared.Client.List(s.Context(), &events, client.InNamespace("default")); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name && e.Reason == reason && e.Source.Host == s.node {
				return nil
			}
		}
		return errors.New("there is none")
	})
}

// TestOneAfterTheOther: those that have to wait say so at once, and one whose tag is taken off never begins.
func TestOneAfterTheOther(t *testing.T) {
	s := newSite(t, "narrow")
	release := make(chan struct{})
	s.runtime.OnPull = func(ctx context.Context, _ *runtimeapi.PullImageRequest) error {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	s.serve()
	s.start("--max-workers-for-pull-image=1")
	at := func(second int64) func(*v1beta1.ImageTagSpec) {
		return func(t *v1beta1.ImageTagSpec) { t.CreatedAt = &metav1.Time{Time: time.Unix(second, 0)} }
	}
	first, second, third := tag("x", at(1)), tag("b", at(2)), tag("c", at(3))
	s.want(map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{second, third, first}}})
	s.phases(map[string]v1beta1.ImagePullPhase{
		"nginx:x": v1beta1.ImagePhasePulling, "nginx:b": v1beta1.ImagePhaseWaiting, "nginx:c": v1beta1.ImagePhaseWaiting,
	})
	s.want(map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{third, first}}})
	s.phases(map[string]v1beta1.ImagePullPhase{"nginx:x": v1beta1.ImagePhasePulling, "nginx:c": v1beta1.ImagePhaseWaiting})
	close(release)
	s.phases(map[string]v1beta1.ImagePullPhase{"nginx:x": v1beta1.ImagePhaseSucceeded, "nginx:c": v1beta1.ImagePhaseSucceeded})
	s.expectPulled("nginx:x", "nginx:c")
}

// TestGoesOn: neither a daemon that is killed nor a runtime that goes away in the middle of a pull costs a round anything, and what has ended stays so.
func TestGoesOn(t *testing.T) {
	s := newSite(t, "robust")
	release := make(chan struct{})
	s.runtime.OnPull = func(ctx context.Context, _ *runtimeapi.PullImageRequest) error {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	s.serve()
	s.start()
	s.want(map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{tag("1", func(t *v1beta1.ImageTagSpec) { t.PullPolicy.BackoffLimit = ptr.To[int32](0) })}}})
	begun := s.phases(map[string]v1beta1.ImagePullPhase{"nginx:1": v1beta1.ImagePhasePulling})
	s.daemon.Kill()
	s.start()
	eventually(t, "the pull is asked for again", func() error {
		if n := len(s.pulled()); n != 2 {
			return fmt.Errorf("%d pulls", n)
		}
		return nil
	})
	s.runtime.Away()
	time.Sleep(300 * time.Millisecond)
	close(release)
	s.serve()
	done := s.phases(map[string]v1beta1.ImagePullPhase{"nginx:1": v1beta1.ImagePhaseSucceeded})
	one, other := begun.Status.ImageStatuses["nginx"].Tags[0], done.Status.ImageStatuses["nginx"].Tags[0]
	if !one.StartTime.Equal(other.StartTime) || one.Version != other.Version {
		t.Errorf("the round began as %+v and ended as %+v, want one round", one, other)
	}
	asked := len(s.pulled())
	s.daemon.Kill()
	s.start()
	s.ready()
	s.want(map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{tag("1"), tag("2")}}})
	s.phases(map[string]v1beta1.ImagePullPhase{"nginx:1": v1beta1.ImagePhaseSucceeded, "nginx:2": v1beta1.ImagePhaseSucceeded})
	if more := s.pulled()[asked:]; len(more) != 1 || more[0] != "nginx:2" {
		t.Errorf("the next life of the daemon pulled %v, want nginx:2", more)
	}
}
