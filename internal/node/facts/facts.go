package facts

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Fact is what a container was started with, for as long as it lives.
type Fact struct {
	// Hash is what the kubelet has put on the container.
	Hash uint64
	// Environment is the part of its environment that comes from labels and annotations; nil when the runtime does not tell.
	Environment map[string]string
}

// IsTold reports whether facts are written on a Pod: it is of a workload of Kruise, or has sidecars of Kruise.
func IsTold(p *corev1.Pod) bool {
	if _, has := p.Annotations[keys.SidecarSetHash]; has {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return false
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && version.Group == v1beta1.GroupVersion.Group
}

// container is one container of a Pod that has been started.
type container struct {
	spec   *corev1.Container
	status *corev1.ContainerStatus
}

// containers returns those that have been started, in the order of the spec, with restartable init containers at the end.
func containers(p *corev1.Pod) []container {
	var out []container
	add := func(specs []corev1.Container, statuses []corev1.ContainerStatus) {
		for i := range specs {
			at := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == specs[i].Name })
			if at >= 0 && statuses[at].ContainerID != "" {
				out = append(out, container{&specs[i], &statuses[at]})
			}
		}
	}
	add(p.Spec.Containers, p.Status.ContainerStatuses)
	sidecars := slices.Clone(p.Spec.InitContainers)
	sidecars = slices.DeleteFunc(sidecars, func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
	add(sidecars, p.Status.InitContainerStatuses)
	return out
}

// takesMetadata reports whether labels or annotations are in the environment of a container.
func takesMetadata(p *corev1.Pod, c container) bool { return len(inplace.Environment(p, c.spec)) > 0 }

// Describe returns what is written on a Pod, given the facts by container ID. A container without a fact is left out, and so is the hash of
// an environment that the runtime does not tell.
func Describe(p *corev1.Pod, known map[string]Fact) pub.RuntimeContainerMetaSet {
	set := pub.RuntimeContainerMetaSet{Containers: []pub.RuntimeContainerMeta{}}
	for _, c := range containers(p) {
		fact, ok := known[c.status.ContainerID]
		if !ok {
			continue
		}
		hashes := pub.RuntimeContainerHashes{PlainHash: fact.Hash}
		if fact.Environment != nil {
			hashes.ExtractedEnvFromMetadataHash = inplace.EnvironmentHash(running(p, c, fact))
		}
		set.Containers = append(set.Containers, pub.RuntimeContainerMeta{
			Name: c.spec.Name, ContainerID: c.status.ContainerID, RestartCount: c.status.RestartCount, Hashes: hashes,
		})
	}
	return set
}

// running returns the variables from labels and annotations that a container runs with.
func running(p *corev1.Pod, c container, fact Fact) []corev1.EnvVar {
	env := inplace.Environment(p, c.spec)
	for i := range env {
		env[i].Value = fact.Environment[env[i].Name]
	}
	return env
}

// ToRestart returns the IDs of the containers to restart, because an update in place changes them and they run with other labels and
// annotations than the Pod has now. A container that the update does not touch keeps what it runs with, though somebody has changed a
// label by hand before. One that the kubelet is about to restart, because its image has changed too, is not among them.
func ToRestart(p *corev1.Pod, known map[string]Fact) []string {
	ready := pod.Condition(p, pub.InPlaceUpdateReady)
	if ready == nil || ready.Status != corev1.ConditionFalse || p.DeletionTimestamp != nil {
		return nil
	}
	changed := inplace.WithNewEnvironment(p)
	var ids []string
	for _, c := range containers(p) {
		fact, ok := known[c.status.ContainerID]
		if !ok || !slices.Contains(changed, c.spec.Name) || fact.Environment == nil || c.status.State.Running == nil ||
			!inplace.StartedFrom(c.spec, fact.Hash) {
			continue
		}
		if !slices.Equal(running(p, c, fact), inplace.Environment(p, c.spec)) {
			ids = append(ids, c.status.ContainerID)
		}
	}
	return ids
}
