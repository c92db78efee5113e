package pull

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	rules "github.com/seed-69ecc383/kruise/internal/rules/pull"
	"github.com/seed-69ecc383/kruise/internal/rules/registry"
)

// Wire: runtimes and their tools tell our pulls from the kubelet's by the annotation pullingBy.
const pullingBy, pullingByUs = "apps.kruise.io/pulling-image-by", "kruise-daemon"

// awayInterval is how often a runtime that is away is tried again.
const awayInterval = 2 * time.Second

// images is the part of the container runtime that pulls need.
type images interface {
	ImageID(ctx context.Context, image string) (string, error)
	PullImage(ctx context.Context, p cri.Pull) error
}

// puller pulls images.
type puller struct {
	// runtime returns the runtime to pull with.
	runtime func() (images, error)
	// credentials returns those for the registry of a task's image, in the order in which they are tried.
	credentials func(context.Context, Task) ([]registry.Credentials, error)
	now         func() time.Time
	// sleep waits, and returns early when the context ends.
	sleep func(context.Context, time.Duration)
}

// round is what a pull reads and reports while it runs.
type round struct {
	// task returns the newest task: Secrets may be added while the pull runs.
	task func() Task
	// failed is called with the error of each attempt but the last one.
	failed func(message string)
	// deadline is when the round fails; zero for never.
	deadline time.Time
	// yield returns a channel that is closed when the round should let others pull, pause waits and returns when it may go on.
	yield func() <-chan struct{}
	pause func(context.Context, time.Duration)
}

// run pulls until the image is on the node, and returns its ID, or until the round fails. The error means nothing when the context has
// ended.
func (p puller) run(ctx context.Context, r round) (id string, err error) {
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Cap: 30 * time.Second, Steps: math.MaxInt32} // 1, 2, 4 s and so on
	for failed, excused := 0, false; ; {
		id, err := p.attempt(ctx, r)
		if err == nil || ctx.Err() != nil {
			return id, err
		}
		pause := awayInterval
		switch {
		case cri.IsAway(err), errors.Is(err, errSealed), errors.Is(err, errYield):
			// A runtime that restarts, or has not started yet, says nothing about the image, nor does a manager that is away.
		case errors.Is(err, errDependency) && !excused:
			excused = true // the runtime may have been away for no more than a moment
		default:
			failed++
			pause = backoff.Step()
		}
		if over(r.deadline, p.now()) {
			return "", fmt.Errorf("%s: %w", rules.MessageDeadline, err)
		}
		if failed > r.task().Retries() {
			return "", err
		}
		r.failed(err.Error())
		r.pause(ctx, p.until(r.deadline, pause))
		if over(r.deadline, p.now()) {
			return "", fmt.Errorf("%s: %w", rules.MessageDeadline, err)
		}
	}
}

// errDependency is the error of a pull that failed as if the runtime were away, by one that answers: something that it pulls with, such as
// a snapshotter or the registry itself, may be away for ever.
var errDependency = errors.New("the container runtime answers, and what it pulls with does not")

// attempt makes one attempt within its time.
func (p puller) attempt(ctx context.Context, r round) (id string, err error) {
	task := r.task()
	limit := p.until(r.deadline, task.Timeout())
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the attempt was ended after %s", limit.Round(time.Second)))
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	yield := r.yield()
	go func() {
		select {
		case <-yield:
			end(errYield)
		case <-ctx.Done():
		}
	}()
	id, err = p.once(ctx, task)
	if err != nil && errors.Is(context.Cause(ctx), errYield) {
		return "", errYield
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// Not wrapped: whatever the end of the time did to the runtime's answer is not the runtime's.
		return "", fmt.Errorf("%w: %s", context.Cause(ctx), err.Error())
	}
	return id, err
}

// until returns the given time, or the time until the deadline if that is less.
func (p puller) until(deadline time.Time, most time.Duration) time.Duration {
	if deadline.IsZero() {
		return most
	}
	return max(0, min(most, deadline.Sub(p.now())))
}

func over(deadline, now time.Time) bool { return !deadline.IsZero() && !now.Before(deadline) }

// once makes sure that the image is on the node.
func (p puller) once(ctx context.Context, task Task) (id string, err error) {
	runtime, err := p.runtime()
	if err != nil {
		return "", err
	}
	image := task.Image()
	if task.Spec.ImagePullPolicy != v1beta1.PullAlways {
		if id, err := runtime.ImageID(ctx, image); err != nil || id != "" {
			return id, err
		}
	}
	begun := p.now()
	err = p.pull(ctx, runtime, task)
	countPull(ctx, p.now().Sub(begun), err)
	if err != nil {
		if !cri.IsAway(err) {
			return "", err
		}
		if _, away := runtime.ImageID(ctx, image); away != nil {
			return "", err
		}
		return "", fmt.Errorf("%w: %s", errDependency, err.Error()) // not wrapped: it is not away
	}
	id, err = runtime.ImageID(ctx, image)
	if err == nil && id == "" {
		err = fmt.Errorf("the container runtime has pulled %s and does not have it", image)
	}
	return id, err
}

// pull pulls with one of the credentials after the other until one succeeds, or anonymously if there are none.
func (p puller) pull(ctx context.Context, runtime images, task Task) error {
	request := cri.Pull{Image: task.Image(), Annotations: map[string]string{}}
	if task.Sandbox != nil {
		request.Labels = maps.Clone(task.Sandbox.Labels)
		maps.Copy(request.Annotations, task.Sandbox.Annotations)
	}
	request.Annotations[pullingBy] = pullingByUs
	credentials, unread := p.credentials(ctx, task)
	if errors.Is(unread, errSealed) {
		return unread
	}
	if len(credentials) == 0 {
		if err := runtime.PullImage(ctx, request); err != nil {
			return errors.Join(err, unread)
		}
		return nil
	}
	var failed []error
	for i := range credentials {
		request.Credentials = &credentials[i]
		err := runtime.PullImage(ctx, request)
		if err == nil {
			return nil
		}
		if cri.IsAway(err) {
			return err // whatever the earlier errors were
		}
		failed = append(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(failed, unread)...)
}
