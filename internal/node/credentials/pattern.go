package credentials

import (
	"fmt"
	"path"
	"strings"

	"github.com/distribution/reference"
)

// Pattern says which repositories credentials are for: a host, each of whose parts may have wildcards, a port if it has one, and the
// beginning of a path.
//
// Example: *.example.com:5000/team is for a.example.com:5000/team/app, and neither for example.com:5000/team/app nor for
// a.example.com/team/app.
type Pattern struct{ host, path string }

// ParsePattern reads a pattern as kubelets write it in their configuration.
func ParsePattern(text string) (Pattern, error) {
	if _, rest, found := strings.Cut(text, "://"); found {
		text = rest
	}
	host, within, _ := strings.Cut(text, "/")
	name, _, _ := strings.Cut(host, ":")
	for part := range strings.SplitSeq(name, ".") {
		if _, err := path.Match(part, ""); err != nil || part == "" {
			return Pattern{}, fmt.Errorf("%q is no pattern of images", text)
		}
	}
	return Pattern{host: host, path: within}, nil
}

// Matches reports whether a repository is one that the pattern is for.
func (p Pattern) Matches(named reference.Named) bool {
	return hostMatches(p.host, reference.Domain(named)) && strings.HasPrefix(reference.Path(named), p.path)
}

// hostMatches compares part by part: a wildcard never reaches over a dot.
func hostMatches(pattern, host string) bool {
	patternName, patternPort, _ := strings.Cut(pattern, ":")
	name, port, _ := strings.Cut(host, ":")
	wanted, parts := strings.Split(patternName, "."), strings.Split(name, ".")
	if patternPort != port || len(wanted) != len(parts) {
		return false
	}
	for i := range parts {
		if matched, err := path.Match(wanted[i], parts[i]); err != nil || !matched {
			return false
		}
	}
	return true
}
