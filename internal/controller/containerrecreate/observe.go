package containerrecreate

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// Survey is all that one pass looks at.
type Survey struct {
	Request *v1beta1.ContainerRecreateRequest
	// Pod is the Pod of the name that the request gives; nil when there is none. It need not be the one that the request was made for.
	Pod *corev1.Pod
	Now time.Time
}

// Observe makes every read of a pass.
func Observe(ctx context.Context, r observe.Reader, request *v1beta1.ContainerRecreateRequest) (Survey, error) {
	v := Survey{Request: request, Pod: &corev1.Pod{}}
	err := r.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: request.Spec.PodName}, v.Pod)
	if apierrors.IsNotFound(err) {
		v.Pod, err = nil, nil
	}
	if err != nil {
		return Survey{}, fmt.Errorf("reading Pod %s: %w", request.Spec.PodName, err)
	}
	return v, nil
}
