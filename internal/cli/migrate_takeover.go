package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/cli/migrate"
)

// takenOver puts a StatefulSet or DaemonSet of Kruise in the place of one of Kubernetes, whose Pods it adopts.
func (p *program) takenOver(ctx context.Context, from access.Object, kind kinds.Kind, confirm confirmation) error {
	if there, err := p.cluster.Get(ctx, kind, from.GetNamespace(), from.GetName()); !apierrors.IsNotFound(err) {
		if err != nil {
			return err
		}
		return fmt.Errorf("%s is there already, and %s as well: delete one of them with --cascade=orphan", there.Arg(), from.Arg())
	}
	to, err := p.cluster.New(kind, migrate.TakeoverOf(from.Unstructured, kind.GroupVersionKind))
	if err != nil {
		return err
	}
	pods, err := p.pods(ctx, from)
	if err != nil {
		return err
	}
	p.screen.Wrapf("", "%s is deleted without its %d Pods, and %s is created with the same spec, which adopts them: none restarts.",
		from.Arg(), len(pods), to.Arg())
	scaler, err := p.left(ctx, from, to)
	if err != nil {
		return err
	}
	if scaler != "" {
		p.screen.Wrapf("", "Warning: HorizontalPodAutoscaler %s scales %s: set apiVersion %s in its scaleTargetRef afterwards.", scaler,
			from.Arg(),
			kind.GroupVersion())
	}
	// Both are checked before the first is made.
	if _, err := p.cluster.Create(ctx, to, true); err != nil {
		return err
	}
	if err := p.cluster.Release(ctx, from, true); err != nil || confirm.dryRun {
		return err
	}
	if !confirm.yes && !p.confirmed("Go on?") {
		return &exit{exitFailed, errors.New("nothing was changed")}
	}
	return p.replaced(ctx, from, to)
}

// replaced deletes one workload and creates the other. Between the two nothing but a file holds the spec: it is named whenever something
// fails.
func (p *program) replaced(ctx context.Context, from, to access.Object) error {
	kept, err := keep(to)
	if err != nil {
		return fmt.Errorf("writing down %s before the other one is deleted: %w", to, err)
	}
	if err := p.cluster.Release(ctx, from, false); err != nil {
		return errors.Join(err, os.Remove(kept))
	}
	created, err := p.createdAfter(context.WithoutCancel(ctx), from, to) // an interruption here would leave Pods without a workload
	if err != nil {
		return fmt.Errorf("%w; its manifest is in %s: kubectl create -f %s", err, kept, kept)
	}
	p.changed(created, "created", false)
	return os.Remove(kept)
}

// letGo is how long a workload is given to let go of its Pods. The garbage collector does it.
const letGo = time.Minute

// createdAfter creates a workload when another one is gone.
func (p *program) createdAfter(ctx context.Context, gone, to access.Object) (access.Object, error) {
	for end := p.now().Add(letGo); p.now().Before(end); time.Sleep(lookAgain) {
		if _, err := p.cluster.Again(ctx, gone); apierrors.IsNotFound(err) {
			break
		}
	}
	return p.cluster.Create(ctx, to, false)
}

// keep writes an object into a file of its own.
func keep(o access.Object) (string, error) {
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp("", o.GetNamespace()+"-"+o.GetName()+"-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	return f.Name(), errors.Join(err, f.Close())
}
