package pod

import (
	"encoding/binary"
	"hash/fnv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// New returns a Pod of a template, without a name, which its owner of the kind controls. It has labels to add to, and shares nothing with
// the template.
func New(template *corev1.PodTemplateSpec, owner metav1.Object, kind schema.GroupVersionKind) *corev1.Pod {
	template = template.DeepCopy()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    owner.GetName() + "-",
			Namespace:       owner.GetNamespace(),
			Labels:          template.Labels,
			Annotations:     template.Annotations,
			Finalizers:      template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)},
		},
		Spec: template.Spec,
	}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	return p
}

// Alphabet is what generated names are made of: it has no vowels, so that none spells a word, and no digits that look like letters.
//
// Wire: the hashes of revisions are made of it.
const Alphabet = "bcdfghjklmnpqrstvwxz2456789"

// What names of Pods are made of: as much of the owner's name as leaves room for the rest in a host name, a dash, and a few characters.
const (
	maxPrefix  = 57
	suffixSize = 5
)

// NewName returns a name for a Pod of an owner, and adds it to those in use. It depends on nothing but what the Pod is for, such as the
// owner's UID and the node, and on the names in use, so that a creation whose answer was lost is repeated under the same name. An owner
// "agent" gets Pods such as agent-7c4xk.
func NewName(owner string, used sets.Set[string], purpose ...string) string {
	prefix := owner
	if len(prefix) > maxPrefix {
		prefix = strings.TrimRight(prefix[:maxPrefix], "-.")
	}
	for try := uint64(0); ; try++ {
		name := prefix + "-" + Suffix(try, purpose...)
		if !used.Has(name) {
			used.Insert(name)
			return name
		}
	}
}

// Suffix returns the end of a name that is tried for a Pod, a hash of what the Pod is for. Each try has another one.
func Suffix(try uint64, purpose ...string) string {
	hash := fnv.New64a()
	for _, part := range purpose {
		_, _ = hash.Write(append([]byte(part), 0)) // a hash does not fail
	}
	_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, try))
	sum := hash.Sum64()
	suffix := make([]byte, suffixSize)
	for i := range suffix {
		suffix[i] = Alphabet[sum%uint64(len(Alphabet))]
		sum /= uint64(len(Alphabet))
	}
	return string(suffix)
}
