package images

import (
	"fmt"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// Annotations that name an image in the index of an OCI layout. The first is whole by convention of those who write it;
// the second, which the specification defines, often holds the tag only.
const (
	annotationWholeName = "io.containerd.image.name"
	annotationRefName   = "org.opencontainers.image.ref.name"
)

// layoutImages are the images of an OCI layout in a folder.
func layoutImages(folder string) ([]namedImage, error) {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, fmt.Errorf("reading its index: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading its index: %w", err)
	}
	var images []namedImage
	byDigest := map[v1.Hash]int{}
	for _, descriptor := range manifest.Manifests {
		image, err := imageFor(index, descriptor)
		if err != nil {
			return nil, err
		}
		at, known := byDigest[descriptor.Digest] // one image with two names is listed twice
		if !known {
			at = len(images)
			byDigest[descriptor.Digest] = at
			images = append(images, namedImage{image: image})
		}
		if name := nameIn(descriptor.Annotations); name != "" {
			images[at].names = append(images[at].names, name)
		}
	}
	return images, nil
}

// nameIn is the name that annotations give, or "". A bare tag is none.
func nameIn(annotations map[string]string) string {
	if name := annotations[annotationWholeName]; name != "" {
		return name
	}
	if name := annotations[annotationRefName]; strings.ContainsAny(name, ":/") {
		return name
	}
	return ""
}

// imageFor is the image that a descriptor of an index stands for: itself, or of several that for this machine.
func imageFor(index v1.ImageIndex, descriptor v1.Descriptor) (v1.Image, error) {
	if !descriptor.MediaType.IsIndex() {
		image, err := index.Image(descriptor.Digest)
		if err != nil {
			return nil, fmt.Errorf("reading its image %s: %w", descriptor.Digest, err)
		}
		return image, nil
	}
	inner, err := index.ImageIndex(descriptor.Digest)
	if err != nil {
		return nil, fmt.Errorf("reading its index %s: %w", descriptor.Digest, err)
	}
	manifest, err := inner.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading its index %s: %w", descriptor.Digest, err)
	}
	here := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	for _, candidate := range manifest.Manifests {
		if candidate.Platform != nil && candidate.Platform.Satisfies(here) {
			return imageFor(inner, candidate)
		}
	}
	return nil, fmt.Errorf("its image %s is for other platforms than %s", descriptor.Digest, here)
}
