package inplace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/dump"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// ImageProgress evaluates whether a container runs the image of its spec. It does when its status names that image. Runtimes may name
// another tag of the same image instead, or only its digest: then it must be another container than before, and not one of the image
// that was replaced, which may have been on its way itself when the next one came.
//
// What ran before, last, is as Running returned it then.
func ImageProgress(p *corev1.Pod, name string, last pub.InPlaceUpdateContainerStatus) Verdict {
	container, status := pod.Lasting(p, name), pod.LastingStatus(p, name)
	if container == nil {
		return Verdict{Done: true}
	}
	if status == nil || status.ImageID == "" {
		return waiting(name, status, "has not started "+container.Image+" yet")
	}
	want, got := parseImage(container.Image), parseImage(status.Image)
	switch {
	case want.digest != "" && strings.HasSuffix(status.ImageID, want.digest):
		return Verdict{Done: true}
	case got.tag != "" && got == want:
		return Verdict{Done: true}
	case last.Image == "":
		// Recorded by software that compares the image alone.
		if status.ImageID != last.ImageID {
			return Verdict{Done: true}
		}
	case status.ContainerID == last.ContainerID, startedFrom(p, container, last.Image):
	case status.ImageID == last.ImageID, got.tag == "", got != parseImage(last.Image):
		return Verdict{Done: true}
	}
	return waiting(name, status, "runs "+status.Image+", not yet "+container.Image)
}

// RunsDigest reports whether a container whose image is given by its digest runs that digest; any other does. Runtimes may know an image by
// the digest of its list and of its platform alike, so what was asked for counts as well as what was found.
func RunsDigest(p *corev1.Pod, container *corev1.Container) bool {
	want := parseImage(container.Image)
	if want.digest == "" {
		return true
	}
	status := pod.ContainerStatus(p, container.Name)
	return status != nil && (strings.HasSuffix(status.ImageID, want.digest) || parseImage(status.Image).digest == want.digest)
}

// Running returns what is to be remembered of a container before its image is changed.
func Running(p *corev1.Pod, name string) pub.InPlaceUpdateContainerStatus {
	var last pub.InPlaceUpdateContainerStatus
	if container := pod.Lasting(p, name); container != nil {
		last.Image = container.Image
	}
	if status := pod.LastingStatus(p, name); status != nil {
		last.ImageID, last.ContainerID = status.ImageID, status.ContainerID
	}
	return last
}

func waiting(name string, status *corev1.ContainerStatus, what string) Verdict {
	why := fmt.Sprintf("container %s %s", name, what)
	if status != nil && status.State.Waiting != nil && status.State.Waiting.Reason != "" {
		why += ": " + status.State.Waiting.Reason
		if status.State.Waiting.Message != "" {
			why += " (" + status.State.Waiting.Message + ")"
		}
	}
	return Verdict{Why: why}
}

// image is a parsed image reference. A reference by digest has no tag that means anything.
type image struct{ name, tag, digest string }

// parseImage parses a reference as container runtimes do: nginx is docker.io/library/nginx:latest.
// Package distribution/reference does the same in 70 times the time (2.4 µs): each pass asks this of every Pod that was updated in place.
func parseImage(reference string) image {
	if strings.HasPrefix(reference, "sha256:") {
		return image{digest: reference}
	}
	var parsed image
	parsed.name, parsed.digest, _ = strings.Cut(reference, "@")
	slash := strings.LastIndexByte(parsed.name, '/')
	if colon := strings.LastIndexByte(parsed.name, ':'); colon > slash {
		parsed.name, parsed.tag = parsed.name[:colon], parsed.name[colon+1:]
	}
	switch {
	case parsed.digest != "":
		parsed.tag = ""
	case parsed.tag == "":
		parsed.tag = "latest"
	}
	domain, rest, hasDomain := strings.Cut(parsed.name, "/")
	if domain == "index.docker.io" {
		domain, parsed.name = "docker.io", "docker.io/"+rest
	}
	switch {
	case !hasDomain:
		parsed.name = "docker.io/library/" + parsed.name
	case !strings.ContainsAny(domain, ".:") && domain != "localhost":
		parsed.name = "docker.io/" + parsed.name
	case domain == "docker.io" && !strings.Contains(rest, "/"):
		parsed.name = "docker.io/library/" + rest
	}
	return parsed
}

// runtimeMeta returns, by container, what the node daemon knows of the containers that really run; nil without a daemon.
func runtimeMeta(p *corev1.Pod) map[string]pub.RuntimeContainerMeta {
	set, err := read[pub.RuntimeContainerMetaSet](p, keys.RuntimeContainersMeta)
	if set == nil || err != nil {
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

// Stale returns the way to restart those containers of a Pod that don't run with the labels and annotations that a template gives to their
// environment, although the Pod has them: somebody changed these on the Pod, which restarts nothing, before the template got the same
// values. Only the node daemon knows.
//
// Without it nothing is stale, nor is anything in a Pod that is being updated or has no readiness gate, by which the daemon knows when to
// restart, nor a container that takes a label or annotation of which the Pod has another value than the template:
// that was set by others, and a restart would not bring the template's.
func Stale(p *corev1.Pod, template *corev1.PodTemplateSpec, o Options) Change {
	if !o.EnvFromMetadata || Pending(p) || !isInService(p) {
		return Change{}
	}
	c := Change{RefMetadata: map[string]metav1.ObjectMeta{}}
	var metas map[string]pub.RuntimeContainerMeta
	for i := range template.Spec.Containers {
		name := template.Spec.Containers[i].Name
		labels, annotations := environmentKeys(&template.Spec.Containers[i])
		meta := metav1.ObjectMeta{Labels: only(template.Labels, labels), Annotations: only(template.Annotations, annotations)}
		if len(meta.Labels)+len(meta.Annotations) == 0 ||
			!maps.Equal(meta.Labels, only(p.Labels, labels)) || !maps.Equal(meta.Annotations, only(p.Annotations, annotations)) {
			continue
		}
		if metas == nil {
			metas = runtimeMeta(p)
		}
		if runsWithOthers(p, metas, name) {
			c.RefMetadata[name] = meta
		}
	}
	return c
}

// only returns those entries of a map that have one of the keys.
func only(m map[string]string, keys []string) map[string]string {
	var out map[string]string
	for _, key := range keys {
		if value, ok := m[key]; ok {
			out = merge(out, map[string]string{key: value})
		}
	}
	return out
}

// runsWithOthers reports whether the node daemon knows that a container, which was started from its present spec, runs with other labels or
// annotations in its environment than the Pod has now.
func runsWithOthers(p *corev1.Pod, metas map[string]pub.RuntimeContainerMeta, name string) bool {
	container := pod.Container(p, name)
	if container == nil || !vouches(metas, pod.ContainerStatus(p, name), container) {
		return false
	}
	hash := metas[name].Hashes.ExtractedEnvFromMetadataHash
	return hash != 0 && hash != EnvironmentHash(Environment(p, container))
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

// environmentKeys returns the keys of the labels and annotations that a container takes into its environment.
func environmentKeys(container *corev1.Container) (labels, annotations []string) {
	for i := range container.Env {
		switch kind, key := metadataKey(&container.Env[i]); kind {
		case "labels":
			labels = append(labels, key)
		case "annotations":
			annotations = append(annotations, key)
		}
	}
	return labels, annotations
}

// metadataKey returns "labels" or "annotations" and the key that an environment variable takes; nothing when it takes none. The versions
// that a sidecar injector notes there change by themselves and restart nothing.
func metadataKey(env *corev1.EnvVar) (kind, key string) {
	if env.Name == "SIDECARSET_VERSION" || env.Name == "SIDECARSET_VERSION_ALT" {
		return "", ""
	}
	if env.ValueFrom == nil || env.ValueFrom.FieldRef == nil {
		return "", ""
	}
	rest, ok := strings.CutPrefix(env.ValueFrom.FieldRef.FieldPath, "metadata.")
	if !ok {
		return "", ""
	}
	kind, quoted, ok := strings.Cut(rest, "['")
	if !ok || !strings.HasSuffix(quoted, "']") {
		return "", ""
	}
	return kind, strings.TrimSuffix(quoted, "']")
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

// resizeProgress evaluates whether a container has the CPU and memory of its spec.
func resizeProgress(p *corev1.Pod, name string) Verdict {
	container, status := pod.Container(p, name), pod.ContainerStatus(p, name)
	if container == nil {
		return Verdict{Done: true}
	}
	var actual corev1.ResourceRequirements
	if status != nil && status.Resources != nil {
		actual = *status.Resources
	}
	if !sameScalable(container.Resources.Limits, actual.Limits) || !sameScalable(container.Resources.Requests, actual.Requests) {
		return Verdict{Why: fmt.Sprintf("container %s is being resized%s", name, resizeProblem(p))}
	}
	return Verdict{Done: true}
}

// sameScalable compares those of the wanted values that can be resized.
func sameScalable(want, got corev1.ResourceList) bool {
	for _, name := range scalable() {
		value, ok := want[name]
		actual := got[name]
		if ok && value.Cmp(actual) != 0 {
			return false
		}
	}
	return true
}

// resizeProblem says what stands in the way of a resize, by the conditions that the kubelet keeps.
func resizeProblem(p *corev1.Pod) string {
	for _, t := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
		if c := pod.Condition(p, t); c != nil && c.Status == corev1.ConditionTrue && c.Reason != "" {
			return fmt.Sprintf(": %s (%s)", c.Reason, c.Message)
		}
	}
	return ""
}

// restartsForResize reports whether the container asks to be restarted when one of the changed resources is resized.
func restartsForResize(container *corev1.Container, changed corev1.ResourceRequirements) bool {
	return slices.ContainsFunc(container.ResizePolicy, func(p corev1.ContainerResizePolicy) bool {
		_, limit := changed.Limits[p.ResourceName]
		_, request := changed.Requests[p.ResourceName]
		return p.RestartPolicy == corev1.RestartContainer && (limit || request)
	})
}
