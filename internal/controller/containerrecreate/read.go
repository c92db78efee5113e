package containerrecreate

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

// Snapshot is all that one pass looks at.
type Snapshot struct {
	Request *v1beta1.ContainerRecreateRequest
	// Pod is the Pod of the name that the request gives; nil when there is none. It need not be the one that the request was made for.
	Pod *corev1.Pod
	Now time.Time
}

// Observe makes every read of a pass. A Pod that the cache does not have, or has another one in place of, is looked for live before it counts as gone:
// caches of several kinds are not of the same moment, and the end of a request is never taken back.
func Observe(ctx context.Context, r observe.Reader, live client.Reader, request *v1beta1.ContainerRecreateRequest) (Snapshot, error) {
	v := Snapshot{Request: request, Pod: &corev1.Pod{}}
	key := client.ObjectKey{Namespace: request.Namespace, Name: request.Spec.PodName}
	err := r.Get(ctx, key, v.Pod)
	isOther := err == nil && string(v.Pod.UID) != request.Labels[keys.RecreatePodUID]
	if (apierrors.IsNotFound(err) || isOther) && !recreate.IsCompleted(request) && request.DeletionTimestamp == nil {
		v.Pod = &corev1.Pod{}
		err = live.Get(ctx, key, v.Pod)
	}
	if apierrors.IsNotFound(err) {
		v.Pod, err = nil, nil
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("reading Pod %s: %w", request.Spec.PodName, err)
	}
	return v, nil
}
