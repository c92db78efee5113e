// Package pull pulls the images that a NodeImage lists onto its node, before Pods need them.
//
// A round is one tag in one version; the manager requests it in the spec, and the daemon reports on it in the status. A round runs until
// the status says that it has ended, and so it goes on after the daemon was killed; an image that is on the node by then is not pulled
// again. Limits count from the start time in the status. A container runtime that is away costs a round no attempt.
//
// Writes are few: one when a round has started, unless it ends at once, one for each failed attempt, and one when it has ended; those of
// several rounds go together, and all of a node are limited to one in two seconds.
package pull

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/node/credentials"
	"github.com/seed-69ecc383/kruise/internal/node/worker"
	"github.com/seed-69ecc383/kruise/internal/seal"
)

// The reasons of events.
const (
	reasonSucceeded = "PullImageSucceed"
	reasonFailed    = "PullImageFailed"
)

const (
	// startDelay is how long a report of rounds that have just started waits: those of images that are on the node end within.
	startDelay = 300 * time.Millisecond
	// A node writes at most one report in two seconds, but for a few in a row.
	reportInterval = 2 * time.Second
	reportBurst    = 5
)

// Config is what the worker is made of.
type Config struct {
	worker.Config
	// MaxPulls is the number of images that are pulled at the same time; less than 1 is no limit.
	MaxPulls int
	// Key opens the credentials in the NodeImage.
	Key *seal.Key
	// Plugins give the credentials that the NodeImage lacks.
	Plugins *credentials.Plugins
}

// Scope returns what the worker watches: the NodeImage of its node.
func Scope(node string) worker.Scope { return worker.Named(&v1beta1.NodeImage{}, node) }

// Add adds the worker. Pulls run until the context ends.
func Add(ctx context.Context, mgr ctrlmanager.Manager, c Config) error {
	trigger := &worker.Trigger{}
	r := &reconciler{Config: c, client: mgr.GetClient(), limiter: rate.NewLimiter(rate.Every(reportInterval), reportBurst)}
	r.rounds = newRounds(ctx, puller{
		runtime:     func() (images, error) { return c.Runtimes.Primary() },
		credentials: c.credentials,
		now:         c.Now,
		sleep:       func(ctx context.Context, d time.Duration) { worker.Sleep(ctx, d) },
	}, c.MaxPulls, func() { trigger.After(0, client.ObjectKey{Name: c.Node}) })
	return ctrl.NewControllerManagedBy(mgr).Named("pull").For(&v1beta1.NodeImage{}).WatchesRawSource(trigger).
		WithOptions(worker.Options(1)).Complete(r)
}

type reconciler struct {
	Config
	client  client.Client
	limiter *rate.Limiter
	rounds  *rounds
	// reportAfter is when rounds that have just started are reported though they have not ended.
	reportAfter time.Time
	// written is what the last write returned: the cache may be older.
	written *v1beta1.NodeImage
}

// Reconcile starts and ends rounds as the NodeImage says, and reports.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	image := &v1beta1.NodeImage{}
	err := r.client.Get(ctx, request.NamespacedName, image)
	if apierrors.IsNotFound(err) {
		r.rounds.follow(nil)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading NodeImage %s: %w", request.Name, err)
	}
	if r.written != nil && worker.IsOlder(image, r.written) {
		image = r.written.DeepCopy()
	}
	if r.rounds.follow(Due(image)) {
		r.reportAfter = r.Now().Add(startDelay)
	}
	seen := r.rounds.statuses()
	if wait := r.reportAfter.Sub(r.Now()); wait > 0 && underWay(seen) {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return r.report(ctx, image, seen)
}

func (r *reconciler) report(ctx context.Context, image *v1beta1.NodeImage, seen map[Round]v1beta1.ImageTagStatus) (ctrl.Result, error) {
	after := image.DeepCopy()
	after.Status = Report(image, seen)
	after.Status.CredentialsKey = r.Key.Public()
	if equality.Semantic.DeepEqual(image.Status, after.Status) {
		return ctrl.Result{}, nil
	}
	if wait := worker.Delay(r.limiter); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	ended := Ended(image, after)
	body, err := patchOf(image.ResourceVersion, image.Status, after.Status)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("encoding the status of NodeImage %s: %w", image.Name, err)
	}
	err = r.client.Status().Patch(ctx, after, client.RawPatch(types.MergePatchType, body))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return ctrl.Result{RequeueAfter: startDelay}, nil // by then the cache has the newer version
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reporting on NodeImage %s: %w", image.Name, err)
	}
	r.written = after
	s := after.Status
	log.FromContext(ctx).Info("Reported",
		"desired", s.Desired, "succeeded", s.Succeeded, "failed", s.Failed, "pulling", s.Pulling, "waiting", s.Waiting)
	r.emit(after, ended)
	return ctrl.Result{}, nil
}

// emit emits the events of rounds that have ended: those of failures also for the jobs that want the image.
func (r *reconciler) emit(image *v1beta1.NodeImage, ended map[Round]v1beta1.ImageTagStatus) {
	for round, status := range ended {
		if status.Phase == v1beta1.ImagePhaseSucceeded {
			r.Events.Eventf(image, corev1.EventTypeNormal, reasonSucceeded, "Image %s is on node %s", round.Image(), r.Node)
			continue
		}
		message := fmt.Sprintf("Image %s could not be pulled on node %s: %s", round.Image(), r.Node, status.Message)
		r.Events.Event(image, corev1.EventTypeWarning, reasonFailed, message)
		for _, tag := range image.Spec.Images[round.Repository].Tags {
			if tag.Tag != round.Tag {
				continue
			}
			for i := range tag.OwnerReferences {
				r.Events.Event(&tag.OwnerReferences[i], corev1.EventTypeWarning, reasonFailed, message)
			}
		}
	}
}
