package sidecar

import (
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

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

// RevisionName returns the name of the revision of the present spec, whether or not it is stored yet.
func RevisionName(set *v1beta1.SidecarSet) (string, error) {
	var collisionCount int32
	if set.Status.CollisionCount != nil {
		collisionCount = *set.Status.CollisionCount
	}
	rev, err := NewRevision(set, "", collisionCount)
	if err != nil {
		return "", err
	}
	return rev.Name, nil
}
