package releasing

import (
	"context"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/patch"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/releases"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// Options is what the webhook needs.
type Options struct {
	// Live reads Rollouts from the API server: one that was just created counts.
	Live client.Reader
	// Cached reads what belongs to workloads.
	Cached observe.Reader
	Now    func() time.Time
	// AnyKind has workloads be of kinds that are only like a StatefulSet, too.
	AnyKind bool
}

// Paths are where the webhook is served, for one kind of workloads each.
func Paths() []string {
	return []string{
		"/mutate-apps-v1-deployment", "/mutate-apps-kruise-io-v1alpha1-cloneset", "/mutate-apps-kruise-io-v1alpha1-daemonset",
		"/mutate-apps-v1-daemonset", "/mutate-unified-workload",
	}
}

// Handler returns the webhook.
func Handler(o Options) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, asked admission.Request) admission.Response {
		if asked.Operation != admissionv1.Update || asked.SubResource != "" {
			return admission.Allowed("")
		}
		w, err := o.read(asked)
		switch {
		case err != nil:
			return admission.Errored(http.StatusBadRequest, err)
		case w == nil || w.objects.Workload.GetDeletionTimestamp() != nil || !w.concerns():
			return admission.Allowed("")
		}
		if err := o.complete(ctx, w); err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		if w.rollout == nil {
			return admission.Allowed("")
		}
		before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.objects.Workload)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		stored, warnings := steer.Stored(steer.Update{Old: w.old, Objects: w.objects, Kind: w.kind, Rollout: w.rollout})
		after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.Patched("", patch.Between(w.raw.Object, before, after)...).WithWarnings(warnings...)
	})
}

// write is an update of a workload.
type write struct {
	of  schema.GroupKind
	old steer.Object
	// objects are the workload as it is written, and what belongs to it. raw is the workload with all that this build does not know.
	objects steer.Objects
	raw     *unstructured.Unstructured
	rollout *v1beta1.Rollout
	kind    steer.Kind
}

// read returns the update that is asked about; nil for one of a kind that is never released.
func (o Options) read(asked admission.Request) (*write, error) {
	w := &write{of: schema.GroupKind{Group: asked.Kind.Group, Kind: asked.Kind.Kind}}
	version := schema.GroupVersion{Group: asked.Kind.Group, Version: asked.Kind.Version}
	ref := v1beta1.WorkloadReference{APIVersion: version.String(), Kind: asked.Kind.Kind}
	now, was := releases.Empty(ref), releases.Empty(ref)
	if now == nil || !o.AnyKind && !releases.IsKnown(ref) {
		return nil, nil
	}
	var err error
	if w.raw, err = request.Parse(asked.Object); err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	old, err := request.Parse(asked.OldObject)
	if err != nil {
		return nil, fmt.Errorf("reading the old object: %w", err)
	}
	for from, into := range map[*unstructured.Unstructured]client.Object{w.raw: now, old: was} {
		if untyped, is := into.(*unstructured.Unstructured); is {
			untyped.Object = from.DeepCopy().Object
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", w.of, asked.Name, err)
		}
	}
	if now.GetUID() == "" { // some agents of other clusters leave it out
		now.SetUID(was.GetUID())
	}
	now.SetNamespace(asked.Namespace)
	w.old, w.objects.Workload = was, now
	return w, nil
}

// concerns tells whether an update can matter to a release: whether a release is under way, or what names or makes one has changed.
func (w *write) concerns() bool {
	_, marked := steer.MarkOf(w.old)
	return marked || steer.IsRelease(w.old, w.objects.Workload)
}

// complete reads the Rollout of the workload, if there is one that counts, and what belongs to the workload.
func (o Options) complete(ctx context.Context, w *write) error {
	workload := w.objects.Workload
	var all v1beta1.RolloutList
	if err := o.Live.List(ctx, &all, client.InNamespace(workload.GetNamespace())); err != nil {
		return fmt.Errorf("listing Rollouts: %w", err)
	}
	for i := range all.Items {
		r := &all.Items[i]
		if releases.GroupKind(r.Spec.WorkloadRef) != w.of || r.Spec.WorkloadRef.Name != workload.GetName() || !steer.Intercepts(r) {
			continue
		}
		if kind, ok := o.kindOf(w.of, steer.StyleOf(r.Spec.Strategy)); ok {
			w.rollout, w.kind = r, kind
		}
	}
	if w.rollout == nil {
		return nil
	}
	w.objects.Now = o.Now()
	return releases.ReadRest(ctx, o.Cached, &w.objects)
}

func (o Options) kindOf(of schema.GroupKind, style v1beta1.RollingStyle) (steer.Kind, bool) {
	if o.AnyKind {
		return steer.AnyOf(of, style)
	}
	return steer.Of(of, style)
}
