package simulate

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Key names an object.
type Key struct {
	Kind      schema.GroupVersionKind
	Namespace string
	Name      string
}

// Change is one write that the API server accepted. The objects in it must not be changed.
type Change struct {
	// Revision is the resource version that the write made.
	Revision int64
	Time     time.Time
	// Actor is who wrote.
	Actor string
	// Pass is the look at the cluster that led to the write; nil for all but controllers.
	Pass *Pass
	// Late means that the controller had given up on the write before it happened, so that it could not know of it.
	Late bool
	Key  Key
	// Before is nil when the object was created, After when it is gone. A deletion that waits, for the kubelet or a finalizer, shows as a
	// deletion timestamp on After.
	Before, After client.Object
}

// Pass is what a controller could know when it decided.
type Pass struct {
	Number int
	// Owner is whom the controller looked at.
	Owner types.NamespacedName
	// Time is when the look began by which the controller decided: that at the cache, or the one around it that came in its place.
	Time time.Time
	// Seen is, for each kind, the revision up to which the controller had seen it.
	Seen map[schema.GroupVersionKind]int64
}

// Cluster is the API server and its storage.
type Cluster struct {
	// Default, if there is one, changes new Pods as a mutating webhook does.
	Default func(*corev1.Pod)
	// Admit, if there is one, may refuse to delete a Pod, after is nil then, or to change more of it than its status, as a validating
	// webhook does.
	Admit func(before, after *corev1.Pod) error

	scheme   *runtime.Scheme
	types    map[reflect.Type]schema.GroupVersionKind
	now      time.Time
	revision int64
	uids     int
	shelves  shelves
	alive    map[types.UID]bool
	history  []Change
}

// NewCluster returns an empty cluster whose clock stands at start.
func NewCluster(scheme *runtime.Scheme, start time.Time) *Cluster {
	return &Cluster{
		scheme: scheme, types: map[reflect.Type]schema.GroupVersionKind{}, now: start, revision: 1, alive: map[types.UID]bool{},
	}
}

// Now returns the time of the cluster's clock.
func (c *Cluster) Now() time.Time { return c.now }

// Sleep moves the clock forward.
func (c *Cluster) Sleep(d time.Duration) { c.now = c.now.Add(d) }

// Revision returns the resource version of the last change.
func (c *Cluster) Revision() int64 { return c.revision }

// History returns all changes so far, the oldest first.
func (c *Cluster) History() []Change { return c.history }

// Get returns the stored object of that name, or nil. It must not be changed.
func (c *Cluster) Get(key Key) client.Object { return c.shelves.of(key.Kind).get(key) }

// Of returns the stored objects of a kind, sorted by name. They must not be changed.
func (c *Cluster) Of(kind schema.GroupVersionKind) []client.Object { return c.shelves.of(kind).all() }

// KeyOf returns the key of an object.
func (c *Cluster) KeyOf(object client.Object) Key {
	of := reflect.TypeOf(object)
	kind, known := c.types[of]
	if !known {
		var err error
		if kind, err = apiutil.GVKForObject(object, c.scheme); err != nil {
			panic("simulate: " + err.Error()) // a type outside the scheme is a mistake of the program
		}
		if of != reflect.TypeFor[*unstructured.Unstructured]() { // which may be of any kind
			c.types[of] = kind
		}
	}
	return Key{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// by says who writes, and after which look.
type by struct {
	actor string
	pass  *Pass
	late  bool
}

// Create stores a copy of the object on behalf of an actor and returns what was stored.
func (c *Cluster) Create(actor string, object client.Object) (client.Object, error) {
	return c.create(by{actor: actor}, copyOf(object))
}

// create stores an object, which belongs to the cluster from then on.
func (c *Cluster) create(who by, stored client.Object) (client.Object, error) {
	key := c.KeyOf(stored)
	if c.Get(key) != nil {
		return nil, apierrors.NewAlreadyExists(resourceOf(key), key.Name)
	}
	c.uids++
	stored.SetUID(types.UID(fmt.Sprintf("uid-%d", c.uids)))
	stored.SetCreationTimestamp(metav1.NewTime(c.now.Truncate(time.Second)))
	stored.SetDeletionTimestamp(nil)
	stored.SetGeneration(1)
	clearStatus(stored)
	switch typed := stored.(type) {
	case *corev1.Pod:
		typed.Status.Phase = corev1.PodPending
		if c.Default != nil {
			c.Default(typed)
		}
	case *corev1.PersistentVolumeClaim:
		typed.Finalizers = append(typed.Finalizers, claimInUse)
	}
	return c.commit(who, key, stored), nil
}

// Update changes a copy of a stored object on behalf of an actor that holds no stale copy, such as a kubelet or a user with an editor. All
// but the identity of the object may change. It returns what is stored then; nil when there is no such object.
func Update[T client.Object](c *Cluster, actor string, old T, change func(T)) client.Object {
	key := c.KeyOf(old)
	stored, ok := c.Get(key).(T)
	if !ok {
		return nil
	}
	after := copyOf(stored).(T)
	change(after)
	return c.store(by{actor: actor}, key, after)
}

// store commits an object if it differs from the one it replaces, with a new generation if its spec does.
func (c *Cluster) store(who by, key Key, after client.Object) client.Object {
	before := c.Get(key)
	if equalObjects(before, after) {
		return before
	}
	return c.replace(who, key, after)
}

// replace commits an object that differs from the one it replaces, with a new generation if its spec does.
func (c *Cluster) replace(who by, key Key, after client.Object) client.Object {
	before := c.Get(key)
	if was, is := specOf(before), specOf(after); was.IsValid() && !sameValue(was, is) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	return c.commit(who, key, after)
}

// commit writes an object, or its removal where it is nil or has nothing to wait for any more, and records the change.
func (c *Cluster) commit(who by, key Key, after client.Object) client.Object {
	kept := c.shelves.of(key.Kind)
	if kept == nil {
		c.shelves, kept = c.shelves.add(key.Kind)
	}
	before := kept.get(key)
	if after != nil && isGone(after) {
		after = nil
	}
	c.revision++
	if after == nil {
		delete(c.alive, before.GetUID())
	} else {
		after.SetResourceVersion(strconv.FormatInt(c.revision, 10))
		c.alive[after.GetUID()] = true
	}
	kept.set(key, after)
	kept.changes = append(kept.changes, len(c.history))
	c.history = append(c.history, Change{
		Revision: c.revision, Time: c.now, Actor: who.actor, Pass: who.pass, Late: who.late, Key: key, Before: before, After: after,
	})
	return after
}

// isGone reports whether nothing keeps an object that is to be deleted: neither a finalizer nor the grace period of a Pod.
func isGone(object client.Object) bool {
	if object.GetDeletionTimestamp() == nil || len(object.GetFinalizers()) > 0 {
		return false
	}
	grace := object.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

func resourceOf(key Key) schema.GroupResource {
	return schema.GroupResource{Group: key.Kind.Group, Resource: strings.ToLower(key.Kind.Kind) + "s"}
}

func copyOf(object client.Object) client.Object {
	return object.DeepCopyObject().(client.Object)
}

// shallow returns an object that shares with a stored one all that fields refer to: for changes that replace fields.
func shallow[T client.Object](object T) T {
	out := reflect.New(reflect.TypeOf(object).Elem())
	out.Elem().Set(reflect.ValueOf(object).Elem())
	return out.Interface().(T)
}

// fill sets the object that out points to.
func fill(out, from client.Object) {
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(from).Elem())
}

// specOf returns the object's field Spec, which is not valid where it has none.
func specOf(object client.Object) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName("Spec")
}

func clearStatus(object client.Object) {
	if field := reflect.ValueOf(object).Elem().FieldByName("Status"); field.IsValid() {
		field.SetZero()
	}
}
