package forecast

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

// World is the copy of a part of a cluster that a forecast goes on from. It is read as a cluster is; what it does not hold is not there.
type World struct {
	// Now is the time in it.
	Now time.Time

	objects map[reflect.Type]map[client.ObjectKey]client.Object
	// sorted are the keys of the objects of a kind, in the order of their names; nil after one has come or gone.
	sorted map[reflect.Type][]client.ObjectKey
	// idle holds the version of each Pod that its kubelet has nothing to do for.
	idle   map[types.UID]*corev1.Pod
	writes int
}

// NewWorld returns a world with these objects at a time. They are its own from then on: nobody may change them.
func NewWorld(now time.Time, objects ...client.Object) *World {
	w := &World{
		Now: now, objects: map[reflect.Type]map[client.ObjectKey]client.Object{}, sorted: map[reflect.Type][]client.ObjectKey{},
		idle: map[types.UID]*corev1.Pod{},
	}
	for _, o := range objects {
		w.put(o)
	}
	return w
}

func (w *World) put(o client.Object) {
	of := reflect.TypeOf(o).Elem()
	if w.objects[of] == nil {
		w.objects[of] = map[client.ObjectKey]client.Object{}
	}
	key := client.ObjectKeyFromObject(o)
	if w.objects[of][key] == nil {
		w.sorted[of] = nil
	}
	w.objects[of][key] = o
}

// keys returns the keys of the objects of a kind, in the order of their names.
func (w *World) keys(of reflect.Type) []client.ObjectKey {
	if w.sorted[of] == nil {
		w.sorted[of] = slices.SortedFunc(maps.Keys(w.objects[of]), func(a, b client.ObjectKey) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
	}
	return w.sorted[of]
}

func (w *World) find(like client.Object) client.Object {
	return w.objects[reflect.TypeOf(like).Elem()][client.ObjectKeyFromObject(like)]
}

// Get reads an object.
func (w *World) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	of := reflect.TypeOf(into).Elem()
	found, ok := w.objects[of][key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(of.Name())}, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

// List reads the objects of a kind, in the order of their names. Of indexes, it knows observe.ByController.
func (w *World) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	isWanted := func(client.Object) bool { return true }
	if o.FieldSelector != nil {
		controller, is := o.FieldSelector.RequiresExactMatch(observe.ByController)
		if !is || len(o.FieldSelector.Requirements()) > 1 {
			return fmt.Errorf("listing %T by %s: a forecast has no such index", list, o.FieldSelector)
		}
		isWanted = func(one client.Object) bool { return observe.ControllerKey(one)[0] == controller }
	}
	items, found := reflect.TypeOf(list).Elem().FieldByName("Items")
	if !found {
		return fmt.Errorf("listing %T: it has no items", list)
	}
	all, keys := w.objects[items.Type.Elem()], w.keys(items.Type.Elem())
	shared := o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy
	out := make([]runtime.Object, 0, len(keys))
	for _, key := range keys {
		one := all[key]
		inNamespace := o.Namespace == "" || key.Namespace == o.Namespace
		switch {
		case !inNamespace || !isWanted(one) || o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(one.GetLabels())):
		case shared:
			out = append(out, one)
		default:
			out = append(out, one.DeepCopyObject())
		}
	}
	if pods, is := list.(*corev1.PodList); is { // there are many, in each pass
		pods.Items = make([]corev1.Pod, len(out))
		for i, p := range out {
			pods.Items[i] = *p.(*corev1.Pod)
		}
		return nil
	}
	return meta.SetList(list, out)
}

// pods returns the Pods, in the order of their names.
func (w *World) pods() []*corev1.Pod {
	of := reflect.TypeFor[corev1.Pod]()
	keys := w.keys(of)
	out := make([]*corev1.Pod, 0, len(keys))
	for _, key := range keys {
		out = append(out, w.objects[of][key].(*corev1.Pod))
	}
	return out
}

// do carries out one write, as the API server would.
func (w *World) do(a plan.Action) error {
	before := w.find(a.Object().(client.Object))
	if before == nil && a.Verb != plan.Create {
		return nil // deleted by a write before
	}
	w.writes++
	switch a.Verb {
	case plan.Create:
		w.create(a.After.DeepCopyObject().(client.Object))
	case plan.Delete:
		w.delete(before)
	case plan.Update:
		after := versionOf(a.After.(client.Object))
		copyStatus(after, before)
		w.stored(after, before)
	case plan.UpdateStatus:
		after := versionOf(before)
		copyStatus(after, a.After.(client.Object))
		after.SetLabels(a.After.GetLabels())
		after.SetAnnotations(a.After.GetAnnotations())
		w.stored(after, before)
	case plan.Resize:
		after := before.DeepCopyObject().(client.Object)
		if p, is := after.(*corev1.Pod); is {
			p.Spec.Containers = a.After.(*corev1.Pod).DeepCopy().Spec.Containers
		}
		w.stored(after, before)
	default:
		return fmt.Errorf("the plan wants to %s %s, which a forecast can't", a.Verb, a.Object().GetName())
	}
	return nil
}

// versionOf returns a new version of an object, whose fields can be set. What they point to is shared: nobody changes it.
func versionOf(o client.Object) client.Object {
	out := reflect.New(reflect.TypeOf(o).Elem())
	out.Elem().Set(reflect.ValueOf(o).Elem())
	return out.Interface().(client.Object)
}

func (w *World) create(o client.Object) {
	o.SetUID(types.UID("forecast-" + strconv.Itoa(w.writes)))
	o.SetCreationTimestamp(metav1.NewTime(w.Now.Truncate(time.Second)))
	o.SetResourceVersion(strconv.Itoa(w.writes))
	o.SetGeneration(1)
	if p, is := o.(*corev1.Pod); is {
		p.Status.Phase = corev1.PodPending
	}
	w.put(o)
}

// stored stores an object; its generation grows where its spec differs.
func (w *World) stored(after, before client.Object) {
	after.SetResourceVersion("forecast-" + strconv.Itoa(w.writes))
	if p, is := after.(*corev1.Pod); is && !reflect.DeepEqual(p.Spec, before.(*corev1.Pod).Spec) {
		p.Generation++
	}
	w.put(after)
}

// delete deletes an object; one with finalizers stays and is on its way out.
func (w *World) delete(o client.Object) {
	if len(o.GetFinalizers()) == 0 {
		of := reflect.TypeOf(o).Elem()
		delete(w.objects[of], client.ObjectKeyFromObject(o))
		delete(w.idle, o.GetUID())
		w.sorted[of] = nil
		return
	}
	after, at := o.DeepCopyObject().(client.Object), metav1.NewTime(w.Now)
	after.SetDeletionTimestamp(&at)
	w.put(after)
}

// copyStatus gives an object the status of another one of its type, where the type has one.
func copyStatus(to, from client.Object) {
	if status := reflect.ValueOf(to).Elem().FieldByName("Status"); status.IsValid() {
		status.Set(reflect.ValueOf(from).Elem().FieldByName("Status"))
	}
}
