package protection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/keys"
	rules "github.com/seed-69ecc383/kruise/internal/rules/protection"
)

// cascadingGateOff is why the objects of a CRD are not counted. Wire: tools look for it.
const cascadingGateOff = "feature-gate DeletionProtectionForCRDCascadingGate is not enabled"

// CRD returns the handler of deletions of CRDs.
func CRD(o Options) admission.Handler {
	return deletions(func(ctx context.Context, asked admission.Request, m *metav1.PartialObjectMetadata) admission.Response {
		advice := fmt.Sprintf("; to delete CustomResourceDefinition %s all the same, remove this label from it", m.Name)
		switch m.Labels[keys.DeleteProtection] {
		case keys.DeleteProtectionAlways:
			return o.refused(ctx, asked, rules.Always()+advice)
		case keys.DeleteProtectionCascading:
		default:
			return admission.Allowed("")
		}
		if !o.CRDs {
			return o.refused(ctx, asked, rules.Cascading("objects that are not counted: "+cascadingGateOff)+advice)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(asked.OldObject.Raw, crd); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
		}
		n, err := o.objects(ctx, crd)
		switch {
		case err != nil:
			return o.refused(ctx, asked, rules.Uncounted("CRs", err)+advice)
		case n > 0:
			return o.refused(ctx, asked, rules.Cascading(fmt.Sprintf("active CRs %d>0", n))+advice)
		}
		return admission.Allowed("")
	})
}

// objects returns how many objects of a CRD there are, in all namespaces.
func (o Options) objects(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (int, error) {
	version, err := listedVersion(crd)
	if err != nil {
		return 0, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind + "List"})
	return o.count(ctx, list)
}

// listedVersion returns the version in which the objects of a CRD are listed: that which they are stored in, if it is served, for which
// nothing has to be converted.
func listedVersion(crd *apiextensionsv1.CustomResourceDefinition) (string, error) {
	served := ""
	for i := range crd.Spec.Versions {
		switch v := &crd.Spec.Versions[i]; {
		case v.Served && v.Storage:
			return v.Name, nil
		case v.Served && served == "":
			served = v.Name
		}
	}
	if served == "" {
		return "", errors.New("no version is served")
	}
	return served, nil
}
