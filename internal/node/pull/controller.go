package pull

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/retry"
	"github.com/seed-69ecc383/kruise/internal/node/work"
)

// The reasons of events.
const (
	reasonSucceeded = "PullImageSucceed"
	reasonFailed    = "PullImageFailed"
)

const (
	// settle is how long a report of rounds that have just begun waits: those of images that are there end within.
	settle = 300 * time.Millisecond
	// A node writes at most one report in two seconds, but for a few in a row.
	reportInterval = 2 * time.Second
	reportBurst    = 5
)

// Config is what the worker is made of.
type Config struct {
	// Node is the name of the node, and so of its NodeImage.
	Node     string
	Runtimes *cri.Set
	Events   record.EventRecorder
	// MaxPulls is the number of images that are pulled at the same time; less than 1 is no limit.
	MaxPulls int
	// Credentials returns those for a repository, out of the Secrets that are named.
	Credentials func(ctx context.Context, repository string, secrets []v1beta1.ReferenceObject) ([]cri.Credentials, error)
	Now         func() time.Time
}

// Scope returns what the worker watches: the NodeImage of its node.
func Scope(node string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&v1beta1.NodeImage{}: {Field: fields.OneTermEqualSelector("metadata.name", node)},
	}
}

// Add adds the worker.
func Add(mgr ctrlmanager.Manager, c Config) error {
	life, err := work.Life(mgr) // pulls outlive the look at the NodeImage that began them
	if err != nil {
		return err
	}
	bell := work.NewBell()
	changed := func() { bell.Ring(&v1beta1.NodeImage{}) }
	w := &worker{Config: c, client: mgr.GetClient(), limiter: rate.NewLimiter(rate.Every(reportInterval), reportBurst)}
	w.rounds = newRounds(life, puller{
		runtime: func() (images, error) { return c.Runtimes.Primary() },
		credentials: func(ctx context.Context, t Task) ([]cri.Credentials, error) {
			return c.Credentials(ctx, t.Repository, t.Secrets)
		},
		now: c.Now,
		pause: func(ctx context.Context, d time.Duration) {
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
		},
	}, c.MaxPulls, changed)
	toOurs := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: c.Node}}}
	})
	return ctrl.NewControllerManagedBy(mgr).Named("pull").For(&v1beta1.NodeImage{}).WatchesRawSource(bell.Source(toOurs)).
		WithOptions(controller.Options{RateLimiter: retry.Limiter()}).Complete(w)
}

// worker reports on one NodeImage and has its rounds followed.
type worker struct {
	Config
	client  client.Client
	rounds  *rounds
	limiter *rate.Limiter

	// settled is when rounds that have begun last are reported though they have not ended.
	settled time.Time
	// replaced is the resource version that the last write replaced by written: what the cache shows until it has seen the write.
	replaced string
	written  *v1beta1.NodeImage
}

// Reconcile looks at the NodeImage, starts what it asks for, and reports.
func (w *worker) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	image := &v1beta1.NodeImage{}
	err := w.client.Get(ctx, request.NamespacedName, image)
	if apierrors.IsNotFound(err) {
		w.rounds.follow(nil)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading NodeImage %s: %w", request.Name, err)
	}
	if w.written != nil && image.ResourceVersion == w.replaced {
		image = w.written.DeepCopy()
	}
	if w.rounds.follow(Due(image)) {
		w.settled = w.Now().Add(settle)
	}
	seen := w.rounds.seen()
	if wait := w.settled.Sub(w.Now()); wait > 0 && underWay(seen) {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return w.report(ctx, image, seen)
}

func (w *worker) report(ctx context.Context, image *v1beta1.NodeImage, seen map[Round]v1beta1.ImageTagStatus) (ctrl.Result, error) {
	after := image.DeepCopy()
	after.Status = Report(image, seen)
	if equality.Semantic.DeepEqual(image.Status, after.Status) {
		return ctrl.Result{}, nil
	}
	if reservation := w.limiter.ReserveN(time.Now(), 1); reservation.Delay() > 0 {
		wait := reservation.Delay()
		reservation.Cancel()
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	ended := Ended(image, after)
	body, err := patchOf(image.ResourceVersion, image.Status, after.Status)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("encoding the status of NodeImage %s: %w", image.Name, err)
	}
	if err := w.client.Status().Patch(ctx, after, client.RawPatch(types.MergePatchType, body)); apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: settle}, nil // the cache will show what has become of it
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("reporting on NodeImage %s: %w", image.Name, err)
	}
	w.replaced, w.written = image.ResourceVersion, after
	s := after.Status
	log.FromContext(ctx).Info("Reported", "desired", s.Desired, "succeeded", s.Succeeded, "failed", s.Failed, "pulling", s.Pulling, "waiting", s.Waiting)
	w.tell(after, ended)
	return ctrl.Result{}, nil
}

// tell emits the events of rounds that have ended: a failure is told to the jobs that want the image, too.
func (w *worker) tell(image *v1beta1.NodeImage, ended map[Round]v1beta1.ImageTagStatus) {
	for round, status := range ended {
		if status.Phase == v1beta1.ImagePhaseSucceeded {
			w.Events.Eventf(image, corev1.EventTypeNormal, reasonSucceeded, "Image %s is on node %s", round.Image(), w.Node)
			continue
		}
		message := fmt.Sprintf("Image %s could not be pulled on node %s: %s", round.Image(), w.Node, status.Message)
		w.Events.Event(image, corev1.EventTypeWarning, reasonFailed, message)
		for _, tag := range image.Spec.Images[round.Repository].Tags {
			if tag.Tag != round.Tag {
				continue
			}
			for i := range tag.OwnerReferences {
				w.Events.Event(&tag.OwnerReferences[i], corev1.EventTypeWarning, reasonFailed, message)
			}
		}
	}
}
