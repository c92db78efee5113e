package pull

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
)

// Wire: pullingBy is the annotation by which runtimes and their tools tell our pulls from the kubelet's.
const pullingBy, pullingByUs = "apps.kruise.io/pulling-image-by", "kruise-daemon"

const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
	awayPause    = 2 * time.Second
)

// deadlineMessage is the text that jobs know for a round that its time has run out for.
const deadlineMessage = "pulling exceeds the activeDeadlineSeconds"

// images is the container runtime, as far as images go.
type images interface {
	ImageID(ctx context.Context, image string) (string, error)
	PullImage(ctx context.Context, p cri.Pull) error
}

// puller pulls the image of one round after the other.
type puller struct {
	// runtime returns the runtime that images are for.
	runtime func() (images, error)
	// credentials returns those that may open the registry of a task's image, in the order in which they are tried.
	credentials func(context.Context, Task) ([]cri.Credentials, error)
	now         func() time.Time
	// pause waits, and returns early when the context ends.
	pause func(context.Context, time.Duration)
}

// round is what a pull needs to know and to tell while it is under way.
type round struct {
	// task returns the newest task: Secrets may come while the pull is under way.
	task func() Task
	// tell is told why the last attempt failed.
	tell func(message string)
	// deadline is when the round is given up; zero when never.
	deadline time.Time
}

// run pulls until the image is there, and returns its ID, or until the round is given up. The error means nothing when the context has ended.
func (p puller) run(ctx context.Context, r round) (id string, err error) {
	for failed, blinked := 0, false; ; {
		id, err := p.limited(ctx, r)
		if err == nil || ctx.Err() != nil {
			return id, err
		}
		pause := awayPause
		switch {
		case cri.IsAway(err):
			// A runtime that is restarted, or has not come up yet, says nothing of the image.
		case errors.Is(err, errBehind) && !blinked:
			blinked = true // it may have been away for no more than a moment
		default:
			failed++
			pause = pauseAfter(failed)
		}
		if over(r.deadline, p.now()) {
			return "", fmt.Errorf("%s: %w", deadlineMessage, err)
		}
		if failed > r.task().Retries() {
			return "", err
		}
		r.tell(err.Error())
		p.pause(ctx, p.until(r.deadline, pause))
		if over(r.deadline, p.now()) {
			return "", fmt.Errorf("%s: %w", deadlineMessage, err)
		}
	}
}

// errBehind is the error of a pull that was refused as if the runtime were away, by one that is there: something that it pulls with, such as a
// snapshotter or the registry itself, may be away for ever.
var errBehind = errors.New("the container runtime answers, and what it pulls with does not")

// pauseAfter returns how long to wait after a number of failed attempts, of which there is one at least: 1, 2, 4 s and so on.
func pauseAfter(failed int) time.Duration {
	return min(firstPause<<min(failed-1, 10), longestPause)
}

// limited makes one attempt within its time.
func (p puller) limited(ctx context.Context, r round) (id string, err error) {
	task := r.task()
	limit := p.until(r.deadline, task.Timeout())
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the attempt was ended after %s", limit.Round(time.Second)))
	defer cancel()
	id, err = p.once(ctx, task)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "", fmt.Errorf("%w: %s", context.Cause(ctx), err.Error()) // not wrapped: whatever the end of the time did to the runtime's answer is not the runtime's
	}
	return id, err
}

// until returns the given time, or less if the deadline comes earlier.
func (p puller) until(deadline time.Time, most time.Duration) time.Duration {
	if deadline.IsZero() {
		return most
	}
	return max(0, min(most, deadline.Sub(p.now())))
}

func over(deadline, now time.Time) bool { return !deadline.IsZero() && !now.Before(deadline) }

// once makes sure that the image is there.
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
	if err := p.pull(ctx, runtime, task); err != nil {
		if !cri.IsAway(err) {
			return "", err
		}
		if _, away := runtime.ImageID(ctx, image); away != nil {
			return "", err
		}
		return "", fmt.Errorf("%w: %s", errBehind, err.Error()) // not wrapped: it is not away
	}
	id, err = runtime.ImageID(ctx, image)
	if err == nil && id == "" {
		err = fmt.Errorf("the container runtime has pulled %s and does not have it", image)
	}
	return id, err
}

// pull asks the registry with each of the credentials until one opens it, or anonymously if there are none.
func (p puller) pull(ctx context.Context, runtime images, task Task) error {
	request := cri.Pull{Image: task.Image(), Annotations: map[string]string{}}
	if task.Sandbox != nil {
		request.Labels = maps.Clone(task.Sandbox.Labels)
		maps.Copy(request.Annotations, task.Sandbox.Annotations)
	}
	request.Annotations[pullingBy] = pullingByUs
	credentials, unread := p.credentials(ctx, task)
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
			return err // whatever was said before: nobody is there to be asked
		}
		failed = append(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(failed, unread)...)
}
