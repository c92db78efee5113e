package inplace

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// ImageProgress judges whether a container runs the image of its spec. It does when its status names that image. Runtimes may name another tag
// of the same image instead, or only its digest: then it must be another container than before, and not one of the image that was replaced,
// which may have been on its way itself when the next one came.
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
		// Recorded by software that judges by the image alone.
		if status.ImageID != last.ImageID {
			return Verdict{Done: true}
		}
	case status.ContainerID == last.ContainerID, startedFrom(p, container, last.Image):
	case status.ImageID == last.ImageID, got.tag == "", got != parseImage(last.Image):
		return Verdict{Done: true}
	}
	return waiting(name, status, "runs "+status.Image+", not yet "+container.Image)
}

// RunsDigest reports whether a container whose image is given by its digest runs that digest; any other does. Runtimes may know an image by the digest
// of its list and of its platform alike, so what was asked for counts as well as what was found.
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
