package access

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/convert"
)

// tries is how often a change is decided anew because another write came first: controllers write the status all the time.
const tries = 10

// Edit changes an object and returns what the API server has stored, or would store with dryRun. The change is given a copy of the object
// in its hub version; it is called again, on a newer object, when somebody else was faster. What it leaves as it was is not written;
// changed is false if that is all.
func (c *Cluster) Edit(
	ctx context.Context, o Object, dryRun bool, change func(*unstructured.Unstructured) error,
) (after Object, changed bool, err error) {
	for try := 1; ; try++ {
		after, changed, err = c.editOnce(ctx, o, dryRun, change)
		if !apierrors.IsConflict(err) || try == tries {
			return after, changed, err
		}
		now, err := c.Again(ctx, o)
		if err != nil {
			return Object{}, false, err
		}
		if now.GetUID() != o.GetUID() {
			return Object{}, false, fmt.Errorf("changing %s: %w, and another one of that name created", o, ErrGone)
		}
		o = now
	}
}

func (c *Cluster) editOnce(
	ctx context.Context, o Object, dryRun bool, change func(*unstructured.Unstructured) error,
) (Object, bool, error) {
	wanted := o.DeepCopy()
	if err := change(wanted); err != nil {
		return Object{}, false, err
	}
	patch, err := patchOf(o, wanted)
	if err != nil || patch == nil {
		return o, false, err
	}
	return c.patch(ctx, o, client.RawPatch(types.MergePatchType, patch), dryRun)
}

func (c *Cluster) patch(ctx context.Context, o Object, patch client.Patch, dryRun bool) (Object, bool, error) {
	options := []client.PatchOption{client.FieldOwner(FieldManager)}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	stored := o.identity()
	if err := c.client.Patch(ctx, stored, patch, options...); err != nil {
		return Object{}, false, fmt.Errorf("changing %s: %w", o, err)
	}
	after, err := toHub(o.Kind, o.served, stored)
	return after, true, err
}

// PatchStatus sends a JSON patch to the status of an object.
func (c *Cluster) PatchStatus(ctx context.Context, o Object, patch []byte) error {
	err := c.client.Status().Patch(ctx, o.identity(), client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldManager))
	if err != nil {
		return fmt.Errorf("changing the status of %s: %w", o, err)
	}
	return nil
}

// identity returns an object of the served version with nothing but its name.
func (o Object) identity() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.served.WithKind(o.Kind.GroupVersionKind.Kind))
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	return u
}

// patchOf returns the merge patch from an object to what it is wanted to be, in the version that is served, for nothing but the state that
// was read; nil if nothing differs.
func patchOf(o Object, wanted *unstructured.Unstructured) ([]byte, error) {
	was, err := o.encode(o.Unstructured)
	if err != nil {
		return nil, err
	}
	is, err := o.encode(wanted)
	if err != nil {
		return nil, err
	}
	between, err := jsonpatch.CreateMergePatch(was, is)
	if err != nil {
		return nil, fmt.Errorf("comparing %s: %w", o, err)
	}
	var patch map[string]any
	if err := json.Unmarshal(between, &patch); err != nil || len(patch) == 0 {
		return nil, err
	}
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"] = o.GetResourceVersion()
	metadata["uid"] = string(o.GetUID())
	patch["metadata"] = metadata
	return json.Marshal(patch)
}

// encode returns an object of the hub version as it is in the served one.
func (o Object) encode(hub *unstructured.Unstructured) ([]byte, error) {
	if o.served != o.Kind.GroupVersion() {
		converted, err := convert.Object(hub, o.served.String())
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", o, err)
		}
		hub = converted
	}
	return json.Marshal(hub.Object)
}
