package replicasets

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/dump"
)

// Annotations of the native controller of Deployments.
const (
	// RevisionAnnotation numbers the ReplicaSets of a Deployment.
	RevisionAnnotation = "deployment.kubernetes.io/revision"
	// historyAnnotation are the numbers that a ReplicaSet had before.
	historyAnnotation = "deployment.kubernetes.io/revision-history"
	// desiredAnnotation and maxAnnotation are spec.replicas, and that and maxSurge, for which a ReplicaSet was last scaled.
	desiredAnnotation = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation     = "deployment.kubernetes.io/max-replicas"
	// rollbackAnnotation asks for a rollback in an old way.
	rollbackAnnotation = "deprecated.deployment.rollback.to"
)

// New returns the ReplicaSet of a Deployment's template, the oldest if there are several; nil if there is none.
func New(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	var found *appsv1.ReplicaSet
	for _, rs := range sets {
		if !isSame(&rs.Spec.Template, &d.Spec.Template) {
			continue
		}
		if found == nil || compareAge(rs, found) < 0 {
			found = rs
		}
	}
	return found
}

func compareAge(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// isSame tells whether templates are the same but for the label that ReplicaSets add.
func isSame(a, b *corev1.PodTemplateSpec) bool {
	return equality.Semantic.DeepEqual(withoutHash(a), withoutHash(b))
}

func withoutHash(t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if _, labelled := t.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; !labelled {
		return t
	}
	out := *t
	out.Labels = maps.Clone(t.Labels)
	delete(out.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return &out
}

// Revision returns the number of a ReplicaSet; 0 if it has none.
func Revision(rs *appsv1.ReplicaSet) int64 {
	n, err := strconv.ParseInt(rs.Annotations[RevisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Hash returns the value of the label pod-template-hash.
//
// Wire: it is what the native controller computes, so that it takes the ReplicaSet for its own.
func Hash(template *corev1.PodTemplateSpec, collisions *int32) string {
	hasher := fnv.New32a()
	_, _ = fmt.Fprintf(hasher, "%v", dump.ForHash(*template)) // a hash does not fail
	if collisions != nil {
		count := make([]byte, 8)
		binary.LittleEndian.PutUint32(count, uint32(*collisions))
		_, _ = hasher.Write(count)
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(hasher.Sum32()), 10))
}

// NameOf returns the name of the ReplicaSet with a hash.
func NameOf(d *appsv1.Deployment, hash string) string {
	name := d.Name
	if most := validation.DNS1123SubdomainMaxLength - len(hash) - 1; len(name) > most {
		name = name[:most]
	}
	return name + "-" + hash
}

// Make returns the ReplicaSet of a Deployment's template as the native controller makes it, without Pods, so that whoever unpauses the
// Deployment has it go on with this one.
func Make(d *appsv1.Deployment, sets []*appsv1.ReplicaSet, l Limits) *appsv1.ReplicaSet {
	hash := Hash(&d.Spec.Template, d.Status.CollisionCount)
	template := *d.Spec.Template.DeepCopy()
	template.Labels = withHash(template.Labels, hash)
	selector := d.Spec.Selector.DeepCopy()
	if selector == nil {
		selector = &metav1.LabelSelector{}
	}
	selector.MatchLabels = withHash(selector.MatchLabels, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: NameOf(d, hash), Namespace: d.Namespace, Labels: maps.Clone(template.Labels), Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32), MinReadySeconds: d.Spec.MinReadySeconds, Selector: selector, Template: template,
		},
	}
	for key, value := range d.Annotations {
		if !slices.Contains(ownAnnotations(), key) {
			rs.Annotations[key] = value
		}
	}
	highest := int64(0)
	for _, other := range sets {
		highest = max(highest, Revision(other))
	}
	rs.Annotations[RevisionAnnotation] = strconv.FormatInt(highest+1, 10)
	return ScaledFor(rs, l)
}

// ownAnnotations are those of a Deployment that its ReplicaSets do not take over.
func ownAnnotations() []string {
	return []string{
		corev1.LastAppliedConfigAnnotation, RevisionAnnotation, historyAnnotation, desiredAnnotation, maxAnnotation, rollbackAnnotation,
	}
}

func withHash(labels map[string]string, hash string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return out
}

// ScaledFor returns the ReplicaSet, which is changed, with the annotations of one that was scaled for the Deployment as it is.
func ScaledFor(rs *appsv1.ReplicaSet, l Limits) *appsv1.ReplicaSet {
	annotations := maps.Clone(rs.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[desiredAnnotation] = strconv.Itoa(int(l.Replicas))
	annotations[maxAnnotation] = strconv.Itoa(int(l.most()))
	rs.Annotations = annotations
	return rs
}

// DesiredOf returns spec.replicas of the Deployment for which a ReplicaSet was last scaled; -1 if it does not say.
func DesiredOf(rs *appsv1.ReplicaSet) int32 {
	n, err := strconv.ParseUint(rs.Annotations[desiredAnnotation], 10, 31)
	if err != nil {
		return -1
	}
	return int32(n)
}
