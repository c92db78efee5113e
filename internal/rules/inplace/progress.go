package inplace

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
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

// Progress judges whether no in-place update is under way on the Pod. A Pod that never had one is done.
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

// batchProgress judges the containers that have been changed so far.
func batchProgress(p *corev1.Pod, state *pub.InPlaceUpdateState, o Options) Verdict {
	if (state.UpdateImages || state.UpdateResources) && p.Status.ObservedGeneration != 0 && p.Status.ObservedGeneration < p.Generation {
		return Verdict{Why: "the kubelet has not seen the change yet"}
	}
	if state.UpdateEnvFromMetadata {
		if verdict := environmentProgress(p, state); !verdict.Done {
			return verdict
		}
	}
	if state.UpdateResources && o.VerticalScaling {
		if verdict := resizeProgress(p, state); !verdict.Done {
			return verdict
		}
	}
	if state.UpdateImages && runsAsSpecified(p) {
		return Verdict{Done: true}
	}
	for _, name := range slices.Sorted(maps.Keys(state.LastContainerStatuses)) {
		if verdict := imageProgress(p, name, state.LastContainerStatuses[name]); !verdict.Done {
			return verdict
		}
	}
	return Verdict{Done: true}
}

// imageProgress judges whether a container runs the image of its spec. The image that the status names decides where it names one. Where it
// names another tag of the same image, as runtimes do, the container must be another one than before; where it names a digest only, the
// image must be another one.
func imageProgress(p *corev1.Pod, name string, last pub.InPlaceUpdateContainerStatus) Verdict {
	container, status := pod.Container(p, name), pod.ContainerStatus(p, name)
	if container == nil {
		return Verdict{Done: true}
	}
	if status == nil || status.ImageID == "" {
		return waiting(name, status, "has not started yet")
	}
	want := parseImage(container.Image)
	got := parseImage(status.Image)
	switch {
	case want.digest != "" && strings.HasSuffix(status.ImageID, want.digest):
		return Verdict{Done: true}
	case got.tag != "" && got == want:
		return Verdict{Done: true}
	case status.ImageID == last.ImageID:
		if last.ContainerID != "" && status.ContainerID != "" && status.ContainerID != last.ContainerID {
			return Verdict{Done: true}
		}
	case got.tag == "" || want.digest != "":
		return Verdict{Done: true}
	case last.ContainerID == "":
		// Recorded by software that judges by the image alone.
		return Verdict{Done: true}
	}
	return waiting(name, status, "runs "+status.Image+", not yet "+container.Image)
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

// resizeProgress judges whether the containers changed so far have the CPU and memory of their spec.
func resizeProgress(p *corev1.Pod, state *pub.InPlaceUpdateState) Verdict {
	for _, batch := range state.ContainerBatchesRecord {
		for _, name := range batch.Containers {
			container, status := pod.Container(p, name), pod.ContainerStatus(p, name)
			if container == nil {
				continue
			}
			if status == nil || status.Resources == nil || !sameScalable(container.Resources.Limits, status.Resources.Limits) ||
				!sameScalable(container.Resources.Requests, status.Resources.Requests) {
				return Verdict{Why: fmt.Sprintf("container %s is being resized%s", name, resizeTrouble(p))}
			}
		}
	}
	return Verdict{Done: true}
}

// sameScalable compares those of the wanted values that can be resized.
func sameScalable(want, got corev1.ResourceList) bool {
	for _, name := range scalable {
		value, ok := want[name]
		actual := got[name]
		if ok && value.Cmp(actual) != 0 {
			return false
		}
	}
	return true
}

func resizeTrouble(p *corev1.Pod) string {
	for _, t := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
		if c := pod.Condition(p, t); c != nil && c.Status == corev1.ConditionTrue && c.Reason != "" {
			return fmt.Sprintf(": %s (%s)", c.Reason, c.Message)
		}
	}
	return ""
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

// comparePriority compares launch priorities, which are decimal integers.
func comparePriority(a, b string) int {
	return priorityNumber(a) - priorityNumber(b)
}

func priorityNumber(text string) int {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int(n)
}
