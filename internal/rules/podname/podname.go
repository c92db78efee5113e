// Package podname names Pods such that a creation whose answer was lost is asked for again under the same name.
package podname

import (
	"encoding/binary"
	"hash/fnv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// What names of Pods are made of: as much of the owner's name as leaves room for the rest in a host name, a dash, and a few characters
// without vowels, so that they spell no word.
const (
	maxPrefix  = 57
	suffixSize = 5
	alphabet   = "bcdfghjklmnpqrstvwxz2456789"
)

// New returns a name for a Pod of an owner of this name, and puts it among those that are used. It follows from what the Pod is for, such as the
// owner's UID and the node, and from the names in use. An owner "agent" gets Pods such as agent-7c4xk.
func New(owner string, used sets.Set[string], purpose ...string) string {
	prefix := owner
	if len(prefix) > maxPrefix {
		prefix = strings.TrimRight(prefix[:maxPrefix], "-.")
	}
	for try := uint64(0); ; try++ {
		hash := fnv.New64a()
		for _, part := range purpose {
			_, _ = hash.Write(append([]byte(part), 0)) // a hash does not fail
		}
		_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, try))
		sum := hash.Sum64()
		suffix := make([]byte, suffixSize)
		for i := range suffix {
			suffix[i] = alphabet[sum%uint64(len(alphabet))]
			sum /= uint64(len(alphabet))
		}
		name := prefix + "-" + string(suffix)
		if !used.Has(name) {
			used.Insert(name)
			return name
		}
	}
}
