package simnode

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/distribution/reference"
)

// What a tag says of an image's conduct. The word may stand anywhere in the tag: "1.2-crash" crashes.
const (
	tagFailPull   = "fail-pull"   // cannot be pulled
	tagCrash      = "crash"       // exits with code 1 soon after each start
	tagNeverReady = "never-ready" // runs, and is never ready
)

// crashAfter is how long a crashing image runs.
const crashAfter = 100_000_000 // nanoseconds

// image is what a container runtime knows of an image reference.
type image struct {
	name   string // as the runtime reports it: "docker.io/library/nginx:1.27"
	id     string // repository and digest: "docker.io/library/nginx@sha256:..."
	tag    string
	failed string // why no runtime could ever pull it; "" for a good reference
}

// resolve names the image behind a reference. The same reference always gives the same ID, another tag another ID.
func resolve(ref string) image {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return image{name: ref, failed: "couldn't parse image name \"" + ref + "\": invalid reference format"}
	}
	named = reference.TagNameOnly(named)
	img := image{name: named.String()}
	if tagged, ok := named.(reference.Tagged); ok {
		img.tag = tagged.Tag()
	}
	if digested, ok := named.(reference.Digested); ok {
		img.id = named.Name() + "@" + digested.Digest().String()
		return img
	}
	img.id = named.Name() + "@sha256:" + digest(named.String())
	return img
}

func (i image) says(word string) bool { return strings.Contains(i.tag, word) }

// digest is a made-up but lasting SHA-256 sum.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}
