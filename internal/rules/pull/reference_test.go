package pull

import (
	"strings"
	"testing"
)

func TestParseReference(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for name, tc := range map[string]struct {
		image string
		want  Reference
		full  string
	}{
		"a name alone is the tag latest":          {"nginx", Reference{"nginx", "latest"}, "nginx:latest"},
		"a tag":                                   {"nginx:1.9.1", Reference{"nginx", "1.9.1"}, "nginx:1.9.1"},
		"Docker Hub written out":                  {"docker.io/library/nginx:1.9", Reference{"nginx", "1.9"}, "nginx:1.9"},
		"a user of Docker Hub":                    {"docker.io/a/b", Reference{"a/b", "latest"}, "a/b:latest"},
		"another registry":                        {"quay.io/a/b:x", Reference{"quay.io/a/b", "x"}, "quay.io/a/b:x"},
		"a registry with a port and no tag":       {"reg:5000/a/b", Reference{"reg:5000/a/b", "latest"}, "reg:5000/a/b:latest"},
		"a digest":                                {"reg:5000/a/b@" + digest, Reference{"reg:5000/a/b", digest}, "reg:5000/a/b@" + digest},
		"of a tag and a digest the digest counts": {"nginx:1.9@" + digest, Reference{"nginx", digest}, "nginx@" + digest},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseReference(tc.image)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("Parse(%q) = %+v, want %+v", tc.image, got, tc.want)
			}
			if got.String() != tc.full {
				t.Errorf("String() = %q, want %q", got.String(), tc.full)
			}
		})
	}
}

func TestParseReferenceRefuses(t *testing.T) {
	for name, image := range map[string]string{
		"nothing":               "",
		"capitals":              "Nginx",
		"a space":               "nginx 1",
		"an empty tag":          "nginx:",
		"half a digest":         "nginx@sha256:12",
		"a scheme":              "https://nginx",
		"a digest and no name":  "@sha256:" + strings.Repeat("0", 64),
		"a name like a digest":  strings.Repeat("0123456789abcdef", 4),
		"a path without a name": "reg:5000/",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := ParseReference(image); err == nil || !strings.HasPrefix(err.Error(), "invalid image "+image+": ") {
				t.Errorf("Parse(%q) = %+v, %v, want an error that names it", image, got, err)
			}
		})
	}
}

// FuzzParseReference: what a container runtime is asked for is the same image again.
func FuzzParseReference(f *testing.F) {
	f.Add("nginx")
	f.Add("reg:5000/a/b:1@sha256:" + strings.Repeat("0", 64))
	f.Fuzz(func(t *testing.T, image string) {
		first, err := ParseReference(image)
		if err != nil {
			return
		}
		second, err := ParseReference(first.String())
		if err != nil || second != first {
			t.Errorf("Parse(%q) = %+v, and %q reads as %+v, %v", image, first, first.String(), second, err)
		}
	})
}
