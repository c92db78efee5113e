package scoping

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostTries is how often a write is tried on which others were first.
const mostTries = 8

// untilFirst tries a change again while others are first, with a pause that doubles each time.
func untilFirst(pause time.Duration, try func() error) error {
	return retry.RetryOnConflict(wait.Backoff{Duration: pause, Factor: 2, Jitter: 1, Steps: mostTries}, try)
}

// change writes a webhook configuration on top of the very version that was read, so that nobody takes back what another one has added meanwhile:
// that is a conflict. It reports whether there was anything to write.
func change(ctx context.Context, c client.Client, live, next client.Object) (bool, error) {
	if equality.Semantic.DeepEqual(live, next) {
		return false, nil
	}
	err := c.Patch(ctx, next, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return false, err // as it is, so that it is tried again
	}
	if err != nil {
		return false, fmt.Errorf("writing webhook configuration %s: %w", live.GetName(), err)
	}
	return true, nil
}
