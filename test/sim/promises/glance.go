package promises

import (
	"context"
	"errors"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// glance reads single objects of a cluster as they are now.
type glance struct{ cluster *simulate.Cluster }

func (g glance) Get(_ context.Context, name client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	key := g.cluster.KeyOf(out)
	key.Namespace, key.Name = name.Namespace, name.Name
	stored := g.cluster.Get(key)
	if stored == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: key.Kind.Group, Resource: key.Kind.Kind}, name.Name)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(stored.DeepCopyObject()).Elem())
	return nil
}

func (glance) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nothing is listed around the cache")
}
