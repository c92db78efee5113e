package protection

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/keys"
	rules "github.com/seed-69ecc383/kruise/internal/rules/protection"
)

// The paths of the webhooks.
const (
	NamespacePath = "/validate-namespace"
	CRDPath       = "/validate-customresourcedefinition"
	ReportPath    = "/mutate-deletion-report"
)

// maxNamed is how many protected objects of a namespace a refusal names.
const maxNamed = 5

// Options configure the webhooks.
type Options struct {
	// Enabled has them served (gate ResourcesDeletionProtection).
	Enabled bool
	// Live reads from the API server: an object that was just created must be found.
	Live client.Reader
	// Contents has protected objects in a namespace looked for, which takes the rights to list them.
	Contents bool
	// CRDs has the objects of a CRD counted, which takes the right to list objects of any kind (gate
	// DeletionProtectionForCRDCascadingGate).
	CRDs bool
	// Reports may be nil.
	Reports *Reports
}

// Namespace returns the handler of deletions of namespaces.
func Namespace(o Options) admission.Handler {
	return deletions(func(ctx context.Context, asked admission.Request, n *metav1.PartialObjectMetadata) admission.Response {
		why, warnings := o.namespace(ctx, n)
		if why == "" {
			return admission.Allowed("").WithWarnings(warnings...)
		}
		return o.refused(ctx, asked, why+fmt.Sprintf("; to delete namespace %s, delete these first or remove the label %s from what has it",
			n.Name, keys.DeleteProtection))
	})
}

// refused reports and returns a refusal.
func (o Options) refused(ctx context.Context, asked admission.Request, why string) admission.Response {
	o.Reports.refused(ctx, asked, why)
	return admission.Denied(why)
}

// deletions returns a handler of the deletions of objects that are not on their way out yet.
func deletions(judge func(context.Context, admission.Request, *metav1.PartialObjectMetadata) admission.Response) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, asked admission.Request) admission.Response {
		if asked.Operation != admissionv1.Delete || asked.SubResource != "" || len(asked.OldObject.Raw) == 0 {
			return admission.Allowed("")
		}
		o := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(asked.OldObject.Raw, o); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
		}
		if o.DeletionTimestamp != nil {
			return admission.Allowed("")
		}
		return judge(ctx, asked, o)
	})
}

// namespace returns why a namespace may not be deleted. What can't be found out keeps a namespace that has the label, and is a warning for
// others: what is protected in it stays in any case.
func (o Options) namespace(ctx context.Context, n *metav1.PartialObjectMetadata) (why string, warnings []string) {
	value := n.Labels[keys.DeleteProtection]
	switch value {
	case keys.DeleteProtectionAlways:
		return rules.Always(), nil
	case keys.DeleteProtectionCascading:
		if why := o.inUse(ctx, n.Name); why != "" {
			return why, nil
		}
	}
	if !o.Contents {
		return "", nil
	}
	objects, err := o.protected(ctx, n.Name)
	switch {
	case err != nil && value == keys.DeleteProtectionCascading:
		return rules.Uncounted("protected objects", err), nil
	case err != nil:
		const unknown = "protected objects in namespace %s, which will stay if there are any, could not be looked for: %v"
		return "", []string{fmt.Sprintf(unknown, n.Name, err)}
	case len(objects) > maxNamed:
		objects = append(objects[:maxNamed], fmt.Sprintf("and %d more", len(objects)-maxNamed))
	}
	if len(objects) == 0 {
		return "", nil
	}
	return rules.Containing(strings.Join(objects, ", ")), nil
}

// inUse returns why a namespace may not be deleted in which there are active Pods or bound claims.
func (o Options) inUse(ctx context.Context, namespace string) string {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	hasNotEnded := fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	)
	n, err := o.count(ctx, pods, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: hasNotEnded})
	switch {
	case err != nil:
		return rules.Uncounted("pods", err)
	case n > 0:
		return rules.Cascading(fmt.Sprintf("active pods %d>0", n))
	}
	bound := 0
	err = o.pages(ctx, &corev1.PersistentVolumeClaimList{}, func(list client.ObjectList) bool {
		for _, c := range list.(*corev1.PersistentVolumeClaimList).Items {
			if c.Status.Phase == corev1.ClaimBound && c.DeletionTimestamp == nil {
				bound++
			}
		}
		return bound == 0
	}, client.InNamespace(namespace))
	switch {
	case err != nil:
		return rules.Uncounted("pvc", err)
	case bound > 0:
		return rules.Cascading(fmt.Sprintf("%q status pvc %d>0", corev1.ClaimBound, bound))
	}
	return ""
}

// protected returns the objects in a namespace whose deletion is refused, such as "Deployment web".
func (o Options) protected(ctx context.Context, namespace string) (objects []string, err error) {
	hasLabel, err := labels.NewRequirement(keys.DeleteProtection, selection.In,
		[]string{keys.DeleteProtectionAlways, keys.DeleteProtectionCascading})
	if err != nil {
		return nil, err
	}
	selected := client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*hasLabel)}
	for _, kind := range rules.Contents() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := o.pages(ctx, list, func(client.ObjectList) bool {
			for i := range list.Items {
				item := &list.Items[i]
				if item.GetDeletionTimestamp() == nil && rules.Refusal(kind.GroupResource(), item) != "" {
					objects = append(objects, kind.Kind+" "+item.GetName())
				}
			}
			return true
		}, client.InNamespace(namespace), selected)
		if err != nil && !meta.IsNoMatchError(err) { // a kind that is not installed has no objects
			return nil, fmt.Errorf("listing %s: %w", kind.Resource, err)
		}
	}
	return objects, nil
}
