package inplace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Verdict says whether an update is done, and else what it waits for, in words.
type Verdict struct {
	Done bool
	Why  string
}

// Progress evaluates whether no in-place update is under way on the Pod. A Pod that never had one is done.
func Progress(p *corev1.Pod, o Options) Verdict {
	if Pending(p) {
		return Verdict{Why: "its update is planned and has not begun"}
	}
	state, err := State(p)
	if state == nil || err != nil {
		// A record that can't be read is removed by Advance.
		return Verdict{Done: true}
	}
	if verdict := batchProgress(p, state, o); !verdict.Done {
		return verdict
	}
	if hasNext(state) {
		return Verdict{Why: fmt.Sprintf("containers %s follow once %s are ready",
			strings.Join(touchedNext(state), ", "), strings.Join(required(state), ", "))}
	}
	return Verdict{Done: true}
}

func required(state *pub.InPlaceUpdateState) []string {
	if state.PreCheckBeforeNext == nil {
		return nil
	}
	return state.PreCheckBeforeNext.ContainersRequiredReady
}

// batchProgress evaluates the containers that have been changed so far.
func batchProgress(p *corev1.Pod, state *pub.InPlaceUpdateState, o Options) Verdict {
	if (state.UpdateImages || state.UpdateResources) && IsUnseen(p) {
		return Verdict{Why: "the kubelet has not seen the change yet"}
	}
	metas := runtimeMeta(p)
	for _, batch := range state.ContainerBatchesRecord {
		for _, name := range batch.Containers {
			if state.UpdateEnvFromMetadata {
				if verdict := environmentProgress(p, metas, name); !verdict.Done {
					return verdict
				}
			}
			if state.UpdateResources && o.VerticalScaling {
				if verdict := resizeProgress(p, name); !verdict.Done {
					return verdict
				}
			}
		}
	}
	if len(state.LastContainerStatuses) == 0 || runsAsSpecified(p) {
		return Verdict{Done: true}
	}
	for _, name := range slices.Sorted(maps.Keys(state.LastContainerStatuses)) {
		if verdict := ImageProgress(p, name, state.LastContainerStatuses[name]); !verdict.Done {
			return verdict
		}
	}
	return Verdict{Done: true}
}

// IsUnseen reports whether the Pod's spec has changed since the kubelet last wrote its status. Kubelets before 1.33 do not say.
func IsUnseen(p *corev1.Pod) bool {
	return p.Status.ObservedGeneration != 0 && p.Status.ObservedGeneration < p.Generation
}

// NeedsFinish reports whether the Pod is kept out of service by the gate of in-place updates.
func NeedsFinish(p *corev1.Pod) bool {
	c := pod.Condition(p, pub.InPlaceUpdateReady)
	return pod.HasReadinessGate(p, pub.InPlaceUpdateReady) && (c == nil || c.Status != corev1.ConditionTrue)
}

// Finish lets the Pod back into service; a new Pod gets its first readiness in the same way.
func Finish(p *corev1.Pod, now time.Time) {
	if NeedsFinish(p) {
		pod.SetGate(p, corev1.PodCondition{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionTrue}, now)
	}
}

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
