package protection

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const label = "policy.kruise.io/delete-protection"

// kindOf is a kind of objects that are to be deleted.
type kindOf struct {
	metav1.GroupVersionKind
	resource string
}

var (
	namespaces  = kindOf{metav1.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces"}
	crds        = kindOf{metav1.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "customresourcedefinitions"}
	deployments = kindOf{metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments"}
)

// deletion returns the request to delete an object.
func (k kindOf) deletion(t rapid.TB, o client.Object) admission.Request {
	t.Helper()
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind(k.GroupVersionKind))
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Delete, Kind: k.GroupVersionKind, Namespace: o.GetNamespace(), Name: o.GetName(),
		OldObject: runtime.RawExtension{Raw: text},
		Resource:  metav1.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.resource},
		UserInfo:  authenticationv1.UserInfo{Username: "me"},
	}}
}

// shop is a namespace with the label.
func shop(value string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if value != "" {
		n.Labels = map[string]string{label: value}
	}
	return n
}

// object is what a list has of something.
type object struct {
	name string
	// phase is that of a Pod or claim.
	phase string
	// isLeaving says that it is being deleted.
	isLeaving bool
	// value is its label, replicas what it asks for.
	value    string
	replicas int64
}

// api answers lists in pages, as the API server does: with the objects that selectors select, and with how many are left where there is no
// selector.
type api struct {
	client.Reader
	t rapid.TB
	// objects are by the kind of their list. A kind that is not there is not installed.
	objects map[string][]object
	// fails are the kinds of lists that can't be read.
	fails map[string]error
	// served are the versions that the objects of a CRD were listed in.
	served []string
	lists  int
}

func (a *api) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	a.lists++
	o := client.ListOptions{}
	o.ApplyOptions(options)
	kind := into.GetObjectKind().GroupVersionKind()
	if _, ok := into.(*corev1.PersistentVolumeClaimList); ok {
		kind.Kind = "PersistentVolumeClaimList"
	}
	all, installed := a.objects[kind.Kind]
	switch {
	case a.fails[kind.Kind] != nil:
		return a.fails[kind.Kind]
	case !installed:
		return &meta.NoKindMatchError{GroupKind: kind.GroupKind()}
	case o.Limit <= 0:
		a.t.Fatal("a list has no limit")
	}
	a.served = append(a.served, kind.Version)
	var selected []object
	for _, one := range all {
		if (o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set{label: one.value})) &&
			(o.FieldSelector == nil || o.FieldSelector.Matches(fields.Set{"status.phase": one.phase})) {
			selected = append(selected, one)
		}
	}
	from := 0
	if o.Continue != "" {
		from, _ = strconv.Atoi(o.Continue)
	}
	to := min(len(selected), from+int(o.Limit))
	if to < len(selected) {
		into.SetContinue(strconv.Itoa(to))
		if o.LabelSelector == nil && o.FieldSelector == nil {
			into.SetRemainingItemCount(new(int64(len(selected) - to)))
		}
	}
	return fill(into, selected[from:to])
}

func fill(into client.ObjectList, page []object) error {
	var items []runtime.Object
	for _, one := range page {
		m := metav1.ObjectMeta{Name: one.name, Labels: map[string]string{label: one.value}}
		if one.isLeaving {
			m.DeletionTimestamp = new(metav1.Unix(1_800_000_000, 0))
		}
		switch into.(type) {
		case *metav1.PartialObjectMetadataList:
			items = append(items, &metav1.PartialObjectMetadata{ObjectMeta: m})
		case *corev1.PersistentVolumeClaimList:
			items = append(items, &corev1.PersistentVolumeClaim{
				ObjectMeta: m, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.PersistentVolumeClaimPhase(one.phase)},
			})
		case *unstructured.UnstructuredList:
			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": one.replicas}}}
			u.SetName(one.name)
			u.SetLabels(m.Labels)
			u.SetDeletionTimestamp(m.DeletionTimestamp)
			items = append(items, u)
		default:
			return fmt.Errorf("%T is not listed", into)
		}
	}
	return meta.SetList(into, items)
}

// said returns what a response says.
func said(t testing.TB, r admission.Response) string {
	t.Helper()
	switch {
	case r.Allowed && len(r.Warnings) > 0:
		return "allowed, " + r.Warnings[0]
	case r.Allowed:
		return "allowed"
	case r.Result.Code != 403 || r.Result.Reason != metav1.StatusReasonForbidden:
		t.Errorf("answered %+v, want 403", r.Result)
	}
	return r.Result.Message
}
