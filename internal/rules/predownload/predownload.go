// Package predownload decides whether the nodes of a workload pull the images of an update before its Pods are updated, so that an update in place
// costs a restart and no download.
//
// Its promise: images are pulled only where the update leaves time for it, only on nodes whose Pods have still to be updated, and once for each
// rollout; and nothing about it ever delays the update itself.
package predownload

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/budget"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// FewReplicas is the most Pods that are too few to pull ahead for.
const FewReplicas = 3

// What a job has where the workload does not say.
const (
	defaultTimeoutSeconds = 300
	backoffLimit          = 1
	ttlSeconds            = 600
)

// Rollout is what there is to know about an update.
type Rollout struct {
	// Update is the wanted revision, Old are those that Pods may still be at.
	Update *appsv1.ControllerRevision
	Old    []*appsv1.ControllerRevision
	// Pointless says why pulling ahead would gain nothing; empty where it would gain something. It is asked only when it matters.
	Pointless func() string
	// UpdatedReady is the number of updated Pods that are ready.
	UpdatedReady int
	Tuning       Tuning
}

// Pace is how fast Pods are updated in place.
type Pace struct {
	// InPlace means that Pods are updated in place, and that this update can be.
	InPlace                             bool
	Replicas, Partition, MaxUnavailable int
}

// Pointless says why pulling ahead would gain nothing; empty where it would gain something.
func (p Pace) Pointless() string {
	switch {
	case !p.InPlace:
		return "Pods are not updated in place"
	case p.Replicas <= FewReplicas:
		return "there are few replicas"
	case p.Partition == 0 && p.MaxUnavailable >= p.Replicas:
		return "all Pods are updated at once"
	default:
		return ""
	}
}

// Tuning is what users set.
type Tuning struct {
	Parallelism    *intstr.IntOrString
	TimeoutSeconds *int32
	// MinUpdatedReady is the number of updated Pods that must be ready before anything is pulled.
	MinUpdatedReady int
}

// Annotated reads the tuning from the annotations of a workload, of which percentages are those of its replicas, rounded up. What can't be read
// counts as not set.
func Annotated(annotations map[string]string, replicas int) Tuning {
	var t Tuning
	if n, err := strconv.ParseUint(annotations[keys.ImagePreDownloadParallelism], 10, 31); err == nil {
		value := intstr.FromInt32(int32(n))
		t.Parallelism = &value
	}
	if n, err := strconv.ParseUint(annotations[keys.ImagePreDownloadTimeoutSeconds], 10, 31); err == nil {
		value := int32(n)
		t.TimeoutSeconds = &value
	}
	if text := annotations[keys.ImagePreDownloadMinUpdatedReadyPods]; text != "" {
		value := intstr.Parse(text)
		if n, err := budget.Scaled(&value, replicas, budget.Up); err == nil {
			t.MinUpdatedReady = n
		}
	}
	return t
}

// Over returns the tuning with what the fields of an update strategy set, which count more than annotations.
func (t Tuning) Over(s *v1beta1.InPlaceUpdateStrategy) Tuning {
	if s == nil {
		return t
	}
	if s.ImagePreDownloadParallelism != nil {
		t.Parallelism = s.ImagePreDownloadParallelism
	}
	if s.ImagePreDownloadTimeoutSeconds != nil {
		t.TimeoutSeconds = s.ImagePreDownloadTimeoutSeconds
	}
	if s.ImagePreDownloadMinUpdatedReadyPods != nil {
		t.MinUpdatedReady = int(*s.ImagePreDownloadMinUpdatedReadyPods)
	}
	return t
}

// Verdict is what to do about a rollout.
type Verdict struct {
	// Wait means that it is too early to decide.
	Wait bool
	// Ignore says why nothing is pulled; empty when it is.
	Ignore string
	// Containers are those whose images are pulled.
	Containers []corev1.Container
	// Template is the Pod template of the update.
	Template *corev1.PodTemplateSpec
}

// Decide judges a rollout. The error says which revision can't be read.
func Decide(r Rollout) (Verdict, error) {
	if len(r.Old) == 0 || r.UpdatedReady < r.Tuning.MinUpdatedReady {
		return Verdict{Wait: true}, nil
	}
	if why := r.Pointless(); why != "" {
		return Verdict{Ignore: why}, nil
	}
	template, err := revision.Template(r.Update)
	if err != nil {
		return Verdict{}, fmt.Errorf("reading revision %s: %w", r.Update.Name, err)
	}
	v := Verdict{Template: template}
	for _, rev := range r.Old {
		old, err := revision.Template(rev)
		if err != nil {
			return Verdict{}, fmt.Errorf("reading revision %s: %w", rev.Name, err)
		}
		for _, c := range template.Spec.Containers {
			has := slices.ContainsFunc(old.Spec.Containers, func(o corev1.Container) bool { return o.Name == c.Name && o.Image == c.Image })
			known := slices.ContainsFunc(v.Containers, func(o corev1.Container) bool { return o.Name == c.Name })
			if !has && !known {
				v.Containers = append(v.Containers, c)
			}
		}
	}
	if len(v.Containers) == 0 {
		v.Ignore = "no image changes"
	}
	return v, nil
}

// Workload is whose Pods are updated.
type Workload struct {
	Namespace string
	Selector  *metav1.LabelSelector
	Owner     metav1.OwnerReference
}

// Jobs returns the jobs that pull the images, one for each container, in the order of the containers.
func (v Verdict) Jobs(w Workload, r Rollout) []*v1beta1.ImagePullJob {
	hash := revision.ShortHash(r.Update.Name)
	labels := maps.Clone(v.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[keys.RevisionHash] = hash
	template := v1beta1.ImagePullJobTemplate{
		PodSelector: &v1beta1.ImagePullJobPodSelector{LabelSelector: outdated(w.Selector, r.Update.Name)},
		Parallelism: orOne(r.Tuning.Parallelism),
		PullPolicy:  &v1beta1.PullPolicy{TimeoutSeconds: ptr(int32(defaultTimeoutSeconds)), BackoffLimit: ptr(int32(backoffLimit))},
		CompletionPolicy: v1beta1.CompletionPolicy{
			Type: v1beta1.AlwaysComplete, TTLSecondsAfterFinished: ptr(int32(ttlSeconds)),
		},
		SandboxConfig:   &v1beta1.SandboxConfig{Labels: maps.Clone(labels), Annotations: maps.Clone(v.Template.Annotations)},
		ImagePullPolicy: v1beta1.PullIfNotPresent,
	}
	if r.Tuning.TimeoutSeconds != nil {
		template.PullPolicy.TimeoutSeconds = r.Tuning.TimeoutSeconds
	}
	for _, secret := range v.Template.Spec.ImagePullSecrets {
		template.PullSecrets = append(template.PullSecrets, secret.Name)
	}
	jobs := make([]*v1beta1.ImagePullJob, 0, len(v.Containers))
	for _, c := range v.Containers {
		jobs = append(jobs, &v1beta1.ImagePullJob{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.Namespace, Name: JobName(r.Update, c.Name), Labels: maps.Clone(labels), OwnerReferences: []metav1.OwnerReference{w.Owner},
			},
			Spec: v1beta1.ImagePullJobSpec{Image: c.Image, ImagePullJobTemplate: *template.DeepCopy()},
		})
	}
	return jobs
}

// JobName returns the name of the job that pulls the image of a container.
func JobName(update *appsv1.ControllerRevision, container string) string {
	return strings.ToLower(update.Name + "-" + container)
}

// longestLabel is the most that the value of a label can have.
const longestLabel = 63

// outdated selects the Pods of a workload that are not at a revision yet, whose label may hold its name or its hash.
func outdated(selector *metav1.LabelSelector, update string) metav1.LabelSelector {
	out := *selector.DeepCopy()
	values := []string{revision.ShortHash(update)}
	if len(update) <= longestLabel && update != values[0] {
		values = append([]string{update}, values...)
	}
	out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: appsv1.ControllerRevisionHashLabelKey, Operator: metav1.LabelSelectorOpNotIn, Values: values,
	})
	return out
}

func orOne(value *intstr.IntOrString) *intstr.IntOrString {
	if value != nil {
		return value
	}
	return ptr(intstr.FromInt32(1))
}

func ptr[T any](v T) *T { return &v }
