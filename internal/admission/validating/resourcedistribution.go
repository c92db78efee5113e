package validating

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/distribution"
)

// ResourceDistribution returns the handler that validates of ResourceDistributions what their schema can't: the resource itself, the
// selector, and namespaces that are both included and excluded.
func ResourceDistribution(o Options) admission.Handler {
	return kind[v1beta1.ResourceDistribution, *v1beta1.ResourceDistribution]{
		hub:      v1beta1.GroupVersion,
		subject:  func(d *v1beta1.ResourceDistribution) any { return d.Spec },
		disabled: o.disabled("ResourceDistribution", http.StatusForbidden),
		validate: rules[v1beta1.ResourceDistribution](o.distributionRules).validate,
		olderNames: func(write[v1beta1.ResourceDistribution]) []olderName {
			return []olderName{{"spec.targets.namespaceSelector", "spec.targets.namespaceLabelSelector"}}
		},
	}.handler()
}

func (o Options) distributionRules(found *findings, d *v1beta1.ResourceDistribution) {
	spec := field.NewPath("spec")
	found.distributed(spec.Child("resource"), d)
	o.servedKind(found, d)
	if besides := d.Spec.Copies; besides != nil {
		found.add(metavalidation.ValidateLabels(besides.Labels, spec.Child("copies", "labels")))
		found.add(apivalidation.ValidateAnnotations(besides.Annotations, spec.Child("copies", "annotations")))
	}
	targets := spec.Child("targets")
	found.selector(targets.Child("namespaceSelector"), &d.Spec.Targets.NamespaceSelector)
	included := map[string]bool{}
	for _, n := range d.Spec.Targets.IncludedNamespaces.List {
		included[n.Name] = true
	}
	for i, n := range d.Spec.Targets.ExcludedNamespaces.List {
		if included[n.Name] {
			found.invalid(targets.Child("excludedNamespaces", "list").Index(i).Child("name"), n.Name,
				"ambiguous targets: the namespace is both included and excluded")
		}
	}
}

// distributed checks the resource that is copied.
func (f *findings) distributed(at *field.Path, d *v1beta1.ResourceDistribution) {
	if d.Spec.Resource == nil {
		return
	}
	source, err := distribution.Parse(d.Spec.Resource.Raw)
	if err != nil {
		f.invalid(at, "", "%v", err)
		return
	}
	strict := json.NewDecoder(bytes.NewReader(d.Spec.Resource.Raw))
	strict.DisallowUnknownFields()
	var kind struct{ Kind string }
	_ = json.Unmarshal(d.Spec.Resource.Raw, &kind) // it was just read
	if err := strict.Decode(distribution.New(kind.Kind)); err != nil {
		f.invalid(at, "", "%v", err)
	}
	meta := at.Child("metadata")
	f.messages(meta.Child("name"), source.Object.GetName(), validation.IsDNS1123Subdomain(source.Object.GetName()))
	f.add(metavalidation.ValidateLabels(source.Object.GetLabels(), meta.Child("labels")))
	f.add(apivalidation.ValidateAnnotations(source.Object.GetAnnotations(), meta.Child("annotations")))
}

// servedKind refuses a kind that this manager does not distribute.
func (o Options) servedKind(found *findings, d *v1beta1.ResourceDistribution) {
	at, name := field.NewPath("spec", "resourceFrom", "kind"), ""
	switch {
	case d.Spec.ResourceFrom != nil:
		name = d.Spec.ResourceFrom.Kind
	case d.Spec.Resource != nil:
		at = field.NewPath("spec", "resource", "kind")
		var kind struct{ Kind string }
		_ = json.Unmarshal(d.Spec.Resource.Raw, &kind) // what can't be read is told elsewhere
		name = kind.Kind
	}
	known, ok := distribution.Find(name)
	if ok && known.IsFurther && !slices.ContainsFunc(o.Distributed, func(k distribution.Kind) bool { return k.Kind == name }) {
		found.invalid(at, name, "%s", distribution.Unserved(name))
	}
}
