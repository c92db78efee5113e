// Package sidecar holds what injection and update of sidecars have in common, and the rules of the update: what a SidecarSet's hash and
// revisions are made of, which Pods it selects, what is noted on a Pod, and what the next step of an update in place is.
//
// An update changes images alone; a Pod whose sidecars differ in more stays as it is until it is created anew. Never more than
// maxUnavailable Pods of the whole set are out of service because of it, whoever owns them. The images are judged by package inplace, the
// revisions are named by package revision.
package sidecar

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// Selection says which Pods a SidecarSet selects. It is made once per change of the SidecarSet, as reading selectors takes time.
type Selection struct {
	pods labels.Selector
	// namespaces is nil where all of them are selected.
	namespaces labels.Selector
}

// Select reads the selectors of a SidecarSet. An empty one is refused: it would select everything.
func Select(selector, namespaceSelector *metav1.LabelSelector) (Selection, error) {
	var s Selection
	var err error
	if s.pods, err = metav1.LabelSelectorAsSelector(selector); err != nil {
		return Selection{}, fmt.Errorf("reading selector: %w", err)
	}
	if s.pods.Empty() {
		return Selection{}, fmt.Errorf("reading selector: it is empty, which would select every Pod")
	}
	if namespaceSelector == nil {
		return s, nil
	}
	if s.namespaces, err = metav1.LabelSelectorAsSelector(namespaceSelector); err != nil {
		return Selection{}, fmt.Errorf("reading namespaceSelector: %w", err)
	}
	if s.namespaces.Empty() {
		return Selection{}, fmt.Errorf("reading namespaceSelector: it is empty, which would select every namespace")
	}
	return s, nil
}

// NeedsNamespace reports whether the labels of the namespace matter.
func (s Selection) NeedsNamespace() bool { return s.namespaces != nil }

// MatchesLabels reports whether a Pod with these labels is selected, in a namespace that is.
func (s Selection) MatchesLabels(of map[string]string) bool {
	return s.pods != nil && s.pods.Matches(labels.Set(of))
}

// MatchesNamespace reports whether a namespace with these labels is selected.
func (s Selection) MatchesNamespace(namespace map[string]string) bool {
	return s.namespaces == nil || s.namespaces.Matches(labels.Set(namespace))
}

// Requirements returns what a selected Pod's labels meet, and what those of its namespace do; none of the latter where all namespaces are
// selected.
func (s Selection) Requirements() (pods, namespaces labels.Requirements) {
	if s.pods != nil {
		pods, _ = s.pods.Requirements()
	}
	if s.namespaces != nil {
		namespaces, _ = s.namespaces.Requirements()
	}
	return pods, namespaces
}

// NamesValues reports whether a requirement on a label is met only by the values that it names.
func NamesValues(r *labels.Requirement) bool {
	return r.Operator() == selection.In || r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals
}

// MayShare reports whether one Pod could be selected by both SidecarSets. It is false only where that can be excluded by the selectors
// alone.
func MayShare(a, b *v1beta1.SidecarSetSpec) bool {
	return pod.SelectorsOverlap(a.Selector, b.Selector) && pod.SelectorsOverlap(a.NamespaceSelector, b.NamespaceSelector)
}

// All returns the init containers and the containers of a SidecarSet.
func All(spec *v1beta1.SidecarSetSpec) iter.Seq[*v1beta1.SidecarContainer] {
	return func(yield func(*v1beta1.SidecarContainer) bool) {
		for _, list := range [][]v1beta1.SidecarContainer{spec.InitContainers, spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// Names returns the names of the sidecars that stay in a Pod, in ascending order: all containers, and the init containers that run beside
// them. A hot-upgrade sidecar has its own name, not those of its two containers.
func Names(spec *v1beta1.SidecarSetSpec) []string {
	var names []string
	for i := range spec.Containers {
		names = append(names, spec.Containers[i].Name)
	}
	for i := range spec.InitContainers {
		if IsNative(&spec.InitContainers[i]) {
			names = append(names, spec.InitContainers[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// IsHot reports whether the sidecar is added as two containers, of which one is idle.
func IsHot(c *v1beta1.SidecarContainer) bool {
	return c.UpgradeStrategy.UpgradeType == v1beta1.SidecarContainerHotUpgrade
}

// HotContainers returns the names of the two containers of a hot-upgrade sidecar. The first one works when a Pod is new.
func HotContainers(sidecar string) (first, second string) {
	return sidecar + "-1", sidecar + "-2"
}

// Hashes are the hashes of a SidecarSet's containers.
type Hashes struct {
	// Full changes with anything about a container that stays in the Pod.
	Full string
	// WithoutImage does not change with images: Pods that have it can be updated in place.
	WithoutImage string
}

// HashesOf returns the hashes of containers, which must have their defaults.
//
// Wire: what is hashed is the JSON of the containers in the order of the fields of their type, together with the init containers if one of
// them stays in the Pod. Pods hold these hashes; another one would make every Pod of a cluster outdated.
func HashesOf(spec *v1beta1.SidecarSetSpec) (Hashes, error) {
	hashed := struct {
		Containers     []v1beta1.SidecarContainer `json:"containers"`
		InitContainers []v1beta1.SidecarContainer `json:"initContainers,omitempty"`
	}{Containers: spec.Containers}
	for i := range spec.InitContainers {
		if IsNative(&spec.InitContainers[i]) {
			hashed.InitContainers = spec.InitContainers
		}
	}
	var hashes Hashes
	var err error
	if hashes.Full, err = hashOf(hashed); err != nil {
		return Hashes{}, err
	}
	hashed.Containers, hashed.InitContainers = withoutImages(hashed.Containers), withoutImages(hashed.InitContainers)
	hashes.WithoutImage, err = hashOf(hashed)
	return hashes, err
}

func withoutImages(containers []v1beta1.SidecarContainer) []v1beta1.SidecarContainer {
	out := slices.Clone(containers)
	for i := range out {
		out[i].Image = ""
	}
	return out
}

func hashOf(value any) (string, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encoding the sidecars: %w", err)
	}
	sum := sha256.Sum256(encoded)
	return revision.Encode(hex.EncodeToString(sum[:])), nil
}

// Stamp notes the hashes of the present containers on the SidecarSet.
func Stamp(set *v1beta1.SidecarSet) error {
	hashes, err := HashesOf(&set.Spec)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, keys.SidecarSetHash, hashes.Full)
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, keys.SidecarSetHashWithoutImage, hashes.WithoutImage)
	return nil
}

// IsNative reports whether an init container stays in the Pod beside its containers.
func IsNative(c *v1beta1.SidecarContainer) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// content is the part of a SidecarSet's spec that its revisions hold: all that is put into Pods.
//
// Wire: these keys, and null for lists that are absent, are in the bytes of every stored revision.
type content struct {
	Containers       []v1beta1.SidecarContainer           `json:"containers"`
	ImagePullSecrets []corev1.LocalObjectReference        `json:"imagePullSecrets"`
	InitContainers   []v1beta1.SidecarContainer           `json:"initContainers"`
	PatchPodMetadata []v1beta1.SidecarSetPatchPodMetadata `json:"patchPodMetadata"`
	Volumes          []corev1.Volume                      `json:"volumes"`
}

// Data returns the bytes of the revision of a spec: a patch that replaces it, its keys sorted, without white space.
func Data(spec *v1beta1.SidecarSetSpec) ([]byte, error) {
	encoded, err := json.Marshal(content{
		Containers:       spec.Containers,
		ImagePullSecrets: spec.ImagePullSecrets,
		InitContainers:   spec.InitContainers,
		PatchPodMetadata: spec.PatchPodMetadata,
		Volumes:          spec.Volumes,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the sidecars: %w", err)
	}
	var fields map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(encoded)))
	decoder.UseNumber() // floating point would not keep every integer
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf("decoding the sidecars: %w", err)
	}
	volumes, _ := fields["volumes"].([]any)
	revision.NullCreationTimestamps(volumes)
	fields["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": fields})
}

// NewRevision returns the revision of the present spec, with no number yet, in the namespace where the revisions of SidecarSets are kept.
func NewRevision(set *v1beta1.SidecarSet, namespace string, collisionCount int32) (*appsv1.ControllerRevision, error) {
	data, err := Data(&set.Spec)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	for key, value := range set.Labels {
		labels[key] = value
	}
	labels[keys.SidecarSetName] = set.Name
	if set.Spec.CustomVersion != "" {
		labels[keys.SidecarSetCustomVersion] = set.Spec.CustomVersion
	}
	return revision.Of(revision.Owner{
		Name:        set.Name,
		Namespace:   namespace,
		Reference:   *metav1.NewControllerRef(set, v1beta1.GroupVersion.WithKind("SidecarSet")),
		Annotations: set.Annotations,
		Labels:      labels,
	}, data, collisionCount), nil
}

// AtRevision returns the SidecarSet as it was at a revision: with what that put into Pods, and the hashes of it.
func AtRevision(set *v1beta1.SidecarSet, rev *appsv1.ControllerRevision) (*v1beta1.SidecarSet, error) {
	var stored struct {
		Spec content `json:"spec"`
	}
	if err := json.Unmarshal(rev.Data.Raw, &stored); err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", rev.Name, err)
	}
	out := set.DeepCopy()
	out.Spec.Containers, out.Spec.InitContainers = stored.Spec.Containers, stored.Spec.InitContainers
	out.Spec.ImagePullSecrets, out.Spec.Volumes = stored.Spec.ImagePullSecrets, stored.Spec.Volumes
	out.Spec.PatchPodMetadata = stored.Spec.PatchPodMetadata
	return out, Stamp(out)
}

// Requested returns the revision that an injection strategy names, or the newest of its custom version; nil if there is none.
func Requested(by *v1beta1.SidecarSetInjectRevision, revisions []*appsv1.ControllerRevision) *appsv1.ControllerRevision {
	var newest *appsv1.ControllerRevision
	name, version := ptr.Deref(by.RevisionName, ""), ptr.Deref(by.CustomVersion, "")
	for _, r := range revisions {
		isRequested := name != "" && r.Name == name
		if name == "" && version != "" {
			isRequested = r.Labels[keys.SidecarSetCustomVersion] == version
		}
		if isRequested && (newest == nil || r.Revision > newest.Revision) {
			newest = r
		}
	}
	return newest
}

// RevisionName returns the name of the revision of the present spec, whether or not it is stored yet.
func RevisionName(set *v1beta1.SidecarSet) (string, error) {
	rev, err := NewRevision(set, "", ptr.Deref(set.Status.CollisionCount, 0))
	if err != nil {
		return "", err
	}
	return rev.Name, nil
}
