package pull

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// Reference names an image as a NodeImage does. Two references to the same image of the same registry are equal, however they are written,
// and what is asked of a container runtime means what the user wrote.
type Reference struct {
	// Repository is the repository as users write it: nginx, quay.io/a/b. Those of Docker Hub lack docker.io/library.
	Repository string
	// Tag is the tag, or the digest with its algorithm: 1.9, sha256:0123...
	Tag string
}

// ParseReference reads a reference. Without a tag and a digest the tag is latest; of both, the digest counts, as it does for container
// runtimes.
//
//	nginx                        nginx            latest
//	docker.io/library/nginx:1.9  nginx            1.9
//	reg:5000/a/b:1@sha256:0123…  reg:5000/a/b     sha256:0123…
func ParseReference(image string) (Reference, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return Reference{}, fmt.Errorf("invalid image %s: %w", image, err)
	}
	out := Reference{Repository: reference.FamiliarName(named), Tag: "latest"}
	if tagged, ok := named.(reference.Tagged); ok {
		out.Tag = tagged.Tag()
	}
	if digested, ok := named.(reference.Digested); ok {
		out.Tag = digested.Digest().String()
	}
	return out, nil
}

// String returns the reference as container runtimes take it: nginx:1.9, reg:5000/a/b@sha256:0123…
func (r Reference) String() string {
	// A tag has no colon, a digest has one after its algorithm.
	if strings.Contains(r.Tag, ":") {
		return r.Repository + "@" + r.Tag
	}
	return r.Repository + ":" + r.Tag
}
