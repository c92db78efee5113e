package inplace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/dump"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// runtimeMeta returns, by container, what the node daemon knows of the containers that really run; nil without a daemon.
func runtimeMeta(p *corev1.Pod) map[string]pub.RuntimeContainerMeta {
	var set pub.RuntimeContainerMetaSet
	if found, err := read(p, &set, keys.RuntimeContainersMeta); !found || err != nil {
		return nil
	}
	out := map[string]pub.RuntimeContainerMeta{}
	for _, meta := range set.Containers {
		out[meta.Name] = meta
	}
	return out
}

// runsAsSpecified reports whether the node daemon vouches for every container: it is the one that the status tells of, and was started from
// the present spec.
func runsAsSpecified(p *corev1.Pod) bool {
	metas := runtimeMeta(p)
	for i := range p.Spec.Containers {
		container := &p.Spec.Containers[i]
		if !vouches(metas, pod.ContainerStatus(p, container.Name), container) {
			return false
		}
	}
	return true
}

// startedFrom reports whether the node daemon knows that the container was started from its spec with another image.
func startedFrom(p *corev1.Pod, container *corev1.Container, image string) bool {
	with := container.DeepCopy()
	with.Image = image
	return vouches(runtimeMeta(p), pod.ContainerStatus(p, container.Name), with)
}

// vouches reports whether the node daemon knows that the container of this status was started from the given spec.
func vouches(metas map[string]pub.RuntimeContainerMeta, status *corev1.ContainerStatus, spec *corev1.Container) bool {
	meta, known := metas[spec.Name]
	return known && status != nil && status.ContainerID == meta.ContainerID &&
		StartedFrom(spec, meta.Hashes.PlainHash)
}

// environmentProgress evaluates whether a container runs with the labels and annotations that its environment takes. Only the node
// daemon knows.
func environmentProgress(p *corev1.Pod, metas map[string]pub.RuntimeContainerMeta, name string) Verdict {
	container := pod.Container(p, name)
	if container == nil {
		return Verdict{Done: true}
	}
	if labels, annotations := environmentKeys(container); len(labels)+len(annotations) == 0 {
		return Verdict{Done: true}
	}
	meta, known := metas[name]
	if !known {
		return Verdict{Why: fmt.Sprintf("no node daemon tells whether container %s runs with its new environment", name)}
	}
	if meta.Hashes.ExtractedEnvFromMetadataHash != EnvironmentHash(Environment(p, container)) {
		return Verdict{Why: fmt.Sprintf("container %s does not run with its new environment yet", name)}
	}
	return Verdict{Done: true}
}

// Environment returns those environment variables of a container that come from labels and annotations, sorted by name, with the values
// that the Pod has for them now: what the container would run with if it were started again. Of a name that is there twice the last one
// counts, as for the process.
func Environment(p *corev1.Pod, container *corev1.Container) []corev1.EnvVar {
	var env []corev1.EnvVar
	for i := range container.Env {
		v := &container.Env[i]
		if slices.ContainsFunc(container.Env[i+1:], func(later corev1.EnvVar) bool { return later.Name == v.Name }) {
			continue
		}
		switch kind, key := metadataKey(v); kind {
		case "labels":
			env = append(env, corev1.EnvVar{Name: v.Name, Value: p.Labels[key]})
		case "annotations":
			env = append(env, corev1.EnvVar{Name: v.Name, Value: p.Annotations[key]})
		}
	}
	slices.SortStableFunc(env, func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	return env
}

// EnvironmentHash returns the hash of an environment as Environment returns it. That of an empty one is not 0.
//
// Wire: the node daemon stores it on the Pod, of what a container really runs with.
func EnvironmentHash(env []corev1.EnvVar) uint64 {
	return hashOf(env)
}

// StartedFrom reports whether a container on which a kubelet has put the hash was started from the present image of its spec.
func StartedFrom(container *corev1.Container, hash uint64) bool {
	return hash == plainHash(container) || hash == olderPlainHash(container)
}

// plainHash returns the hash that a kubelet since 1.31 puts on a container: of its image and its name.
func plainHash(container *corev1.Container) uint64 {
	return hashOf(map[string]string{"image": container.Image, "name": container.Name})
}

// olderPlainHash returns the hash that older kubelets put on a container: of its whole spec.
func olderPlainHash(container *corev1.Container) uint64 {
	return hashOf(container)
}

func hashOf(value any) uint64 {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encoding for a hash: %v", err)) // specs and strings can be encoded
	}
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%v", dump.ForHash(encoded)) // a hash does not fail
	return uint64(h.Sum32())
}
