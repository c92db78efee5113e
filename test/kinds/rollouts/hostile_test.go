package rollouts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// writing has a tool write something back every 200 ms, as one does that knows nothing of releases, until it is told to end. Who wrote
// before it is no mistake of anybody.
func (e *env) writing(write func() error) (end func()) {
	ctx, stop := context.WithCancel(e.Ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			if err := write(); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
				e.Errorf("writing the manifest back: %v", err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	return func() {
		stop()
		done.Wait()
	}
}

// replaceBy replaces the CloneSet by a manifest.
func (e *env) replaceBy(manifest string) error {
	o, now := e.Manifest(manifest), &cloneSetType{}
	if err := e.Get(e.Ctx, client.ObjectKeyFromObject(o), now); err != nil {
		return err
	}
	o.SetResourceVersion(now.ResourceVersion)
	return e.Update(e.Ctx, o)
}

// TestScenario14WithAHostileWriter: a release that is disabled or deleted leaves nothing frozen, also while a tool writes the manifest back
// again and again.
func TestScenario14WithAHostileWriter(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*env){
		"disabled": func(e *env) { e.change(func(r *v1beta1.Rollout) { r.Spec.Disabled = true }) },
		"deleted":  func(e *env) { e.Must(e.Delete(e.Ctx, e.rollout())) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.start(fmt.Sprintf(cloneSet, 6, ""), rolloutOf(ofCloneSet, steps("1", "50%", "100%")))
			e.setImage("v2")
			e.paused(1, "v2", 1)
			manifest := strings.ReplaceAll(fmt.Sprintf(cloneSet, 6, ""), "web:v1", "web:v2")
			end := e.writing(func() error { return e.replaceBy(manifest) })
			defer end()
			e.Never("a Pod more is updated", func() bool { return e.images()["v2"] > 1 })
			e.approve()
			e.paused(2, "v2", 3)
			change(e)
			e.Eventually("the Rollout has let go", func() error {
				r := &v1beta1.Rollout{}
				err := e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "demo"}, r)
				if apierrors.IsNotFound(err) || err == nil && r.Status.Phase == v1beta1.RolloutPhaseDisabled {
					return nil
				}
				return fmt.Errorf("%s: %w", r.Status.Phase, err)
			})
			e.Eventually("the workload has gone on by itself", func() error { return e.ready("v2", 6) })
			end()
			if e.cloneSet().Annotations[keys.InProgressing] != "" {
				t.Error(errors.New("it is marked"))
			}
			e.clean()
		})
	}
}
