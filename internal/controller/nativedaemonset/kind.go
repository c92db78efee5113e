package nativedaemonset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch
// +kubebuilder:rbac:groups=rollouts.kruise.io,resources=rollouts;batchreleases,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Kind is the controller of native DaemonSets in a release. It writes no status: the native controller does. Its cache needs the indexes
// observe.ByController of Pods and ControllerRevisions, and releases.ByWorkload of Rollouts and BatchReleases.
func Kind() loop.Kind[*appsv1.DaemonSet, State, struct{}] {
	return loop.Kind[*appsv1.DaemonSet, State, struct{}]{
		Name: "nativedaemonset",
		Watches: func(cached observe.Reader) []loop.Watch {
			return []loop.Watch{
				controlled(cached, &corev1.Pod{}), controlled(cached, &appsv1.ControllerRevision{}),
				releases.Leaving(&v1beta1.Rollout{}, ofDaemonSet()), releases.Leaving(&v1beta1.BatchRelease{}, ofDaemonSet()),
			}
		},
		Read: read,
		Plan: Plan,
	}
}

// controlled returns the events of objects of DaemonSets that a release has in hand: those of all others would ask for passes all the time.
func controlled(cached observe.Reader, object client.Object) loop.Watch {
	return loop.Affected(object, func(ctx context.Context, before, after client.Object) ([]types.NamespacedName, error) {
		if after == nil {
			after = before
		}
		by := metav1.GetControllerOfNoCopy(after)
		if by == nil || by.Kind != "DaemonSet" || by.APIVersion != appsv1.SchemeGroupVersion.String() {
			return nil, nil
		}
		name := types.NamespacedName{Namespace: after.GetNamespace(), Name: by.Name}
		set, err := observe.Find(ctx, cached, name, &appsv1.DaemonSet{})
		if err != nil || set == nil || !steer.IsReleased(set) {
			return nil, err
		}
		return []types.NamespacedName{name}, nil
	})
}
