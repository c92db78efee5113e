package simulate

import (
	"context"
	"fmt"
	"math/rand"
	"reflect"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/seed-69ecc383/kruise/internal/plan"
)

// Client is one controller process's connection to the API server: it writes through faults and reads live.
type Client struct {
	cluster *Cluster
	actor   string
	rand    *rand.Rand
	faults  Faults
	pass    *Pass
	dead    bool
	// overloaded is until when the API server is.
	overloaded time.Time
	// beforeWrite is told what is to become of a write, and says what does.
	beforeWrite func(fate) fate
	// late are the writes that are under way although nobody waits for them.
	late []func()
	// glance is what the controller wants to do between creations, and meantime what goes on until it does.
	glance   func()
	meantime func(glance func())
}

// Connect returns a connection without faults.
func (c *Cluster) Connect(actor string, r *rand.Rand) *Client {
	return &Client{cluster: c, actor: actor, rand: r}
}

// SetFaults says what may go wrong from now on.
func (c *Client) SetFaults(f Faults) { c.faults = f }

// IsDead reports whether the process behind the connection has crashed.
func (c *Client) IsDead() bool { return c.dead }

// Begin says that what is written from now on follows from this look.
func (c *Client) Begin(p *Pass) { c.pass = p }

// Create makes the object and updates it with the server's answer.
func (c *Client) Create(_ context.Context, object plan.Object) error {
	sent := copyOf(object)
	err := c.through(c.cluster.KeyOf(object), creation, func(who by) error {
		stored, err := c.cluster.create(who, sent)
		if err == nil {
			fill(object, copyOf(stored))
		}
		return err
	})
	if c.glance != nil && c.meantime != nil && !c.dead {
		c.meantime(c.glance)
	}
	return err
}

// Between has the controller glance at the cluster between the creations of a pass, until the function that it returns is called.
func (c *Client) Between(glance func()) (over func()) {
	c.glance = glance
	return func() { c.glance = nil }
}

// Patch patches the object, or one of its subresources, and updates it with the server's answer.
func (c *Client) Patch(_ context.Context, object plan.Object, subresource string, kind types.PatchType, body []byte) error {
	tries := anyOther
	if subresource == "" {
		tries = specChange
	}
	return c.through(c.cluster.KeyOf(object), tries, func(who by) error {
		stored, err := c.cluster.patch(who, object, patch{subresource: subresource, kind: kind, body: body})
		if err == nil && stored != nil {
			fill(object, copyOf(stored))
		}
		return err
	})
}

// Delete deletes the object on conditions, and returns the resource version of its deletion.
func (c *Client) Delete(_ context.Context, object plan.Object, conditions metav1.Preconditions) (string, error) {
	version := ""
	err := c.through(c.cluster.KeyOf(object), anyOther, func(who by) error {
		revision, err := c.cluster.delete(who, object, conditions)
		version = strconv.FormatInt(revision, 10)
		return err
	})
	return version, err
}

// Read reads the object live. A writer does so to understand an answer, long after the decision was made: it is not a look at the cluster.
func (c *Client) Read(_ context.Context, object plan.Object) error {
	return c.read(client.ObjectKeyFromObject(object), object)
}

// Get reads an object live.
func (c *Client) Get(_ context.Context, name client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	if err := c.read(name, out); err != nil {
		return err
	}
	c.see(c.cluster.KeyOf(out).Kind)
	if c.pass != nil && name == c.pass.Owner {
		// A look around the cache begins with its owner, and the controller reads its clock once it has that: the answer may take long.
		c.pass.Time = c.cluster.now
	}
	return nil
}

func (c *Client) read(name client.ObjectKey, out client.Object) error {
	if err := c.reach(); err != nil {
		return err
	}
	key := c.cluster.KeyOf(out)
	key.Namespace, key.Name = name.Namespace, name.Name
	stored := c.cluster.Get(key)
	if stored == nil {
		return apierrors.NewNotFound(resourceOf(key), key.Name)
	}
	fill(out, copyOf(stored))
	return nil
}

// List reads objects live. Like the API server, it knows no indexes, but selects Pods by their node.
func (c *Client) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	kind, err := itemKind(list, c.cluster.scheme)
	if err != nil {
		return err
	}
	if err := c.reach(); err != nil {
		return err
	}
	c.see(kind)
	list.SetResourceVersion(strconv.FormatInt(c.cluster.revision, 10))
	return collect(c.cluster.Of(kind), serverFields(kind), list, options)
}

// serverFields returns the fields of a kind by which the API server selects.
func serverFields(kind schema.GroupVersionKind) map[string]client.IndexerFunc {
	if kind != corev1.SchemeGroupVersion.WithKind("Pod") {
		return nil
	}
	return map[string]client.IndexerFunc{"spec.nodeName": func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }}
}

// see notes that a live read showed the present state of a kind.
func (c *Client) see(kind schema.GroupVersionKind) {
	if c.pass != nil {
		c.pass.Seen[kind] = c.cluster.revision
	}
}

func itemKind(list client.ObjectList, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	kind, err := apiutil.GVKForObject(list, scheme)
	if err != nil {
		return kind, fmt.Errorf("finding the kind of %T: %w", list, err)
	}
	kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	return kind, nil
}

// indexes holds, for each kind and field, the function that gives an object's keys.
type indexes map[schema.GroupVersionKind]map[string]client.IndexerFunc

// collect puts those of the objects into the list that the options ask for.
func collect(objects []client.Object, fields map[string]client.IndexerFunc, list client.ObjectList, options []client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	shared := o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return fmt.Errorf("filling %T: %w", list, err)
	}
	slice := reflect.ValueOf(items).Elem()
	slice.SetLen(0)
	for _, object := range objects {
		fits, err := isWanted(object, fields, o)
		if err != nil {
			return err
		}
		if !fits {
			continue
		}
		if !shared {
			object = copyOf(object)
		}
		slice.Set(reflect.Append(slice, reflect.ValueOf(object).Elem()))
	}
	return nil
}

func isWanted(object client.Object, fields map[string]client.IndexerFunc, o client.ListOptions) (bool, error) {
	if o.Namespace != "" && object.GetNamespace() != o.Namespace {
		return false, nil
	}
	if o.LabelSelector != nil && !o.LabelSelector.Matches(labelsOf(object)) {
		return false, nil
	}
	if o.FieldSelector == nil {
		return true, nil
	}
	for _, requirement := range o.FieldSelector.Requirements() {
		index, ok := fields[requirement.Field]
		if !ok {
			return false, fmt.Errorf("there is no index %s", requirement.Field)
		}
		found := false
		for _, key := range index(object) {
			found = found || key == requirement.Value
		}
		if !found {
			return false, nil
		}
	}
	return true, nil
}
