package distribution

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// Object is one of the kinds that can be distributed.
type Object interface {
	metav1.Object
	runtime.Object
}

// Source is what copies are made from.
type Source struct {
	// Object is the resource with its defaults, and without what it says of itself: namespace, UID and the like.
	Object Object
	// Hash tells it from all others.
	Hash string
}

// Parse reads the resource of a ResourceDistribution. The hash is that of its bytes.
func Parse(raw []byte) (Source, error) {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(raw, &kind); err != nil {
		return Source{}, fmt.Errorf("reading spec.resource: %w", err)
	}
	known, ok := Find(kind.Kind)
	if !ok || kind.APIVersion != known.GroupVersion().String() {
		return Source{}, fmt.Errorf("unknown or unsupported resource GroupKind %s %s, only support "+
			"[Secret, ConfigMap, ServiceAccount, LimitRange, NetworkPolicy]", kind.APIVersion, kind.Kind)
	}
	object := known.empty()
	if err := json.Unmarshal(raw, object); err != nil {
		return Source{}, fmt.Errorf("reading spec.resource: %w", err)
	}
	if object.GetName() == "" {
		return Source{}, errors.New("spec.resource has no metadata.name")
	}
	sum := sha256.Sum256(raw)
	return Source{Object: bare(object), Hash: hex.EncodeToString(sum[:])}, nil
}

// From returns a source made from an object of the cluster. The hash is that of its content, labels and annotations.
func From(object Object) Source {
	stripped := bare(object)
	stripped.SetFinalizers(nil) // whoever holds the original does not hold its copies
	encoded, err := json.Marshal(stripped)
	if err != nil {
		panic("encoding an object of the API: " + err.Error()) // it consists of maps of texts
	}
	sum := sha256.Sum256(encoded)
	return Source{Object: stripped, Hash: hex.EncodeToString(sum[:])}
}

// bare returns a copy of an object as it is in no namespace yet, with what the API server would write into it.
func bare(object Object) Object {
	out := object.DeepCopyObject().(Object)
	meta := metav1.ObjectMeta{Name: object.GetName()}
	meta.Labels, meta.Annotations = maps.Clone(object.GetLabels()), maps.Clone(object.GetAnnotations())
	delete(meta.Annotations, corev1.LastAppliedConfigAnnotation)
	meta.Finalizers = object.GetFinalizers()
	out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	*out.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta) = meta
	complete(out)
	return out
}

// NameOf returns the name of the copies of a source.
func (s Source) NameOf(of *v1beta1.ResourceDistribution) string {
	if of.Spec.Copies != nil && of.Spec.Copies.Name != "" {
		return of.Spec.Copies.Name
	}
	return s.Object.GetName()
}

// declared are the keys of labels and annotations that a resource declares.
type declared struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// Copy returns what a copy is to be in a namespace. Was is the object that is there, nil if there is none: its foreign labels, annotations
// and finalizers stay, and what the resource declared before and declares no more goes.
func (s Source) Copy(of *v1beta1.ResourceDistribution, namespace string, was Object) Object {
	out := s.Object.DeepCopyObject().(Object)
	if besides := of.Spec.Copies; besides != nil {
		rename(out, besides.Name, besides.Labels, besides.Annotations)
	}
	keysText, err := json.Marshal(declared{
		Labels: slices.Sorted(maps.Keys(out.GetLabels())), Annotations: slices.Sorted(maps.Keys(out.GetAnnotations())),
	})
	if err != nil {
		panic("encoding texts: " + err.Error())
	}
	labels, annotations := map[string]string{}, map[string]string{}
	if was != nil {
		labels, annotations = foreign(was)
		keep(out, was)
		out.SetUID(was.GetUID())
		out.SetResourceVersion(was.GetResourceVersion())
		out.SetCreationTimestamp(was.GetCreationTimestamp())
		out.SetGenerateName(was.GetGenerateName())
		out.SetManagedFields(was.GetManagedFields())
		for _, finalizer := range was.GetFinalizers() {
			if !slices.Contains(out.GetFinalizers(), finalizer) {
				out.SetFinalizers(append(out.GetFinalizers(), finalizer))
			}
		}
	}
	if of.Spec.ExpandNamespace {
		expand(out, namespace)
	}
	maps.Copy(labels, out.GetLabels())
	maps.Copy(annotations, out.GetAnnotations())
	labels[keys.DistributedBy] = string(of.UID)
	annotations[keys.DistributedFrom], annotations[keys.DistributedHash] = of.Name, s.Hash
	annotations[keys.DistributedKeys] = string(keysText)
	out.SetNamespace(namespace)
	out.SetLabels(labels)
	out.SetAnnotations(annotations)
	if of.Spec.DeletionPolicy != v1beta1.RetainCopies { // a copy that is to outlive its ResourceDistribution is owned by nobody
		out.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "ResourceDistribution", Name: of.Name, UID: of.UID,
			Controller: new(true), BlockOwnerDeletion: new(true),
		}})
	}
	return out
}

// namespaceVariable stands for the namespace of a copy.
const namespaceVariable = "$(namespace)"

// expand writes the namespace into what a copy says.
func expand(object Object, namespace string) {
	all := []map[string]string{object.GetLabels(), object.GetAnnotations()}
	switch o := object.(type) {
	case *corev1.ConfigMap:
		all = append(all, o.Data)
	case *corev1.Secret:
		for key, value := range o.Data {
			o.Data[key] = bytes.ReplaceAll(value, []byte(namespaceVariable), []byte(namespace))
		}
	}
	for _, texts := range all {
		for key, value := range texts {
			texts[key] = strings.ReplaceAll(value, namespaceVariable, namespace)
		}
	}
}

// foreign returns the labels and annotations of an object without those that a resource has declared.
func foreign(was Object) (labels, annotations map[string]string) {
	var before declared
	// What can't be read was written by somebody else: nothing is known to be declared.
	_ = json.Unmarshal([]byte(was.GetAnnotations()[keys.DistributedKeys]), &before)
	labels, annotations = map[string]string{}, map[string]string{}
	maps.Copy(labels, was.GetLabels())
	maps.Copy(annotations, was.GetAnnotations())
	for _, key := range before.Labels {
		delete(labels, key)
	}
	for _, key := range before.Annotations {
		delete(annotations, key)
	}
	return labels, annotations
}

// IsSame reports whether an object is as a copy is to be.
func IsSame(is, wanted Object) bool {
	return equality.Semantic.DeepEqual(content(is), content(wanted)) && maps.Equal(is.GetLabels(), wanted.GetLabels()) &&
		maps.Equal(is.GetAnnotations(), wanted.GetAnnotations()) &&
		equality.Semantic.DeepEqual(is.GetOwnerReferences(), wanted.GetOwnerReferences()) &&
		equality.Semantic.DeepEqual(is.GetFinalizers(), wanted.GetFinalizers())
}

// SameContent reports whether two objects hold the same, whatever their metadata.
func SameContent(a, b Object) bool { return equality.Semantic.DeepEqual(content(a), content(b)) }

// content returns what an object holds, as it is stored.
func content(of Object) Object {
	out := bare(of)
	out.SetName("")
	out.SetLabels(nil)
	out.SetAnnotations(nil)
	out.SetFinalizers(nil)
	return out
}

// IsImmutable reports whether the content of an object can't be changed any more.
func IsImmutable(object Object) bool {
	switch o := object.(type) {
	case *corev1.Secret:
		return o.Immutable != nil && *o.Immutable
	case *corev1.ConfigMap:
		return o.Immutable != nil && *o.Immutable
	}
	return false
}

// NeedsNew reports whether an object can only be brought to another content by deleting it: it is immutable, or a Secret of another type.
func NeedsNew(is, wanted Object) bool {
	if IsImmutable(is) && !SameContent(is, wanted) {
		return true
	}
	a, ok := is.(*corev1.Secret)
	b, both := wanted.(*corev1.Secret)
	return ok && both && a.Type != b.Type
}
