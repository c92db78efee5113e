package sidecarterminator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// Kind is the controller of Pods with marked sidecars. The cache keeps the whole of Pods of which terminate.Marked is true.
func Kind() loop.Kind[*corev1.Pod, Snapshot, corev1.PodStatus] {
	return loop.Kind[*corev1.Pod, Snapshot, corev1.PodStatus]{
		Name:     "sidecarterminator",
		Concerns: func(_, after *corev1.Pod) bool { return isRelevant(after) },
		Owns:     []client.Object{&v1beta1.ContainerRecreateRequest{}},
		Read:     read,
		Plan:     Plan,
	}
}

// Snapshot is all that one pass reads.
type Snapshot struct {
	Pod *corev1.Pod
	// Node is the Pod's node; nil when it is gone, or not known yet.
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

// read makes every read of a pass.
func read(ctx context.Context, r loop.Reads, p *corev1.Pod) (s Snapshot, err error) {
	s.Pod, s.Now = p, r.Now
	if !isRelevant(p) {
		return s, nil
	}
	if s.Node, err = observe.Find(ctx, r, client.ObjectKey{Name: p.Spec.NodeName}, &corev1.Node{}); err != nil {
		return s, err
	}
	for n := range mostRequests {
		key := client.ObjectKey{Namespace: p.Namespace, Name: requestName(p, n)}
		request, err := observe.Find(ctx, r, key, &v1beta1.ContainerRecreateRequest{})
		if err != nil || request == nil {
			return s, err
		}
		if metav1.IsControlledBy(request, p) {
			s.Requests = append(s.Requests, request)
		}
	}
	return s, nil
}
