package sidecarterminator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// Snapshot is all that one pass looks at.
type Snapshot struct {
	Pod *corev1.Pod
	// Node is the Pod's node; nil when it is gone.
	Node *corev1.Node
	// Requests are the requests to stop sidecars that were made so far, in their order.
	Requests []*v1beta1.ContainerRecreateRequest
	Now      time.Time
}

// requestName returns the name of a Pod's n-th request, counted from 0.
//
// Wire: the name of the first one is known to other software.
func requestName(p *corev1.Pod, n int) string {
	name := "sidecar-termination-" + string(p.UID)
	if n > 0 {
		name = fmt.Sprintf("%s-%d", name, n+1)
	}
	return name
}

// Observe makes the reads of a pass.
func Observe(ctx context.Context, reader observe.Reader, p *corev1.Pod, now time.Time) (Snapshot, error) {
	s := Snapshot{Pod: p, Now: now}
	if !matters(p) {
		return s, nil
	}
	node := &corev1.Node{}
	err := reader.Get(ctx, client.ObjectKey{Name: p.Spec.NodeName}, node)
	if client.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("reading node %s: %w", p.Spec.NodeName, err)
	}
	if err == nil {
		s.Node = node
	}
	for n := range mostRequests {
		request := &v1beta1.ContainerRecreateRequest{}
		name := requestName(p, n)
		err := reader.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: name}, request)
		if apierrors.IsNotFound(err) {
			break
		}
		if err != nil {
			return s, fmt.Errorf("reading request %s: %w", name, err)
		}
		if metav1.IsControlledBy(request, p) {
			s.Requests = append(s.Requests, request)
		}
	}
	return s, nil
}
