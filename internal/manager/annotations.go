package manager

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/spread"
)

// namedAnnotations returns the keys of annotations of Pods that an object of users names.
func namedAnnotations(object any) (out []string) {
	switch o := object.(type) {
	case *v1alpha1.PodProbeMarker:
		for i := range o.Spec.Probes {
			for j := range o.Spec.Probes[i].MarkerPolicy {
				for key := range o.Spec.Probes[i].MarkerPolicy[j].Annotations {
					out = append(out, key)
				}
			}
		}
	case *v1beta1.WorkloadSpread:
		out = spread.NamedAnnotations(o)
	case *v1beta1.PersistentPodState:
		for _, annotation := range o.Spec.PersistentPodAnnotations {
			out = append(out, annotation.Key)
		}
	}
	return out
}

// naming returns what notes the annotations that objects name before a cache stores them.
func naming(named *observe.AnnotationKeys) toolscache.TransformFunc {
	return func(object any) (any, error) {
		named.Name(namedAnnotations(object)...)
		return observe.Slim(object)
	}
}

// nameAnnotations notes the annotations that all objects of a namespace, or of all, name, before the cache of Pods begins. Kinds that are
// not installed name none. Where they can't be read, as before any manager converts them, the cache keeps all annotations.
func nameAnnotations(ctx context.Context, live client.Reader, namespace string, named *observe.AnnotationKeys) {
	lists := []client.ObjectList{&v1alpha1.PodProbeMarkerList{}, &v1beta1.WorkloadSpreadList{}, &v1beta1.PersistentPodStateList{}}
	for _, list := range lists {
		err := live.List(ctx, list, client.InNamespace(namespace))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = meta.EachListItem(list, func(object runtime.Object) error {
				named.Name(namedAnnotations(object)...)
				return nil
			})
		}
		if err != nil {
			log.FromContext(ctx).Info("All annotations of Pods are kept in memory, because some objects that may name them can't be read",
				"problem", err.Error())
			return
		}
	}
	named.Complete()
}
