package pull

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// The daemons of nodes may read the Secrets of one namespace only, so those that jobs name are copied there. One copy serves all jobs that
// name the same Secret, and lists them in an annotation.

// SourceOf returns which Secret a copy is of; false for a Secret that is none.
func SourceOf(s *corev1.Secret) (types.NamespacedName, bool) {
	return parseKey(s.Annotations[keys.PullSecretSource])
}

// ReferencesOf returns the jobs that a copy is for, sorted.
func ReferencesOf(s *corev1.Secret) []types.NamespacedName {
	var out []types.NamespacedName
	for text := range strings.SplitSeq(s.Annotations[keys.PullSecretReferences], ",") {
		if key, ok := parseKey(strings.TrimSpace(text)); ok {
			out = append(out, key)
		}
	}
	return normal(out)
}

func parseKey(text string) (types.NamespacedName, bool) {
	namespace, name, ok := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}, ok && namespace != "" && name != ""
}

// normal returns keys sorted, each once.
func normal(all []types.NamespacedName) []types.NamespacedName {
	out := slices.Clone(all)
	slices.SortFunc(out, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// CopyOf finds the copy of a Secret; nil when there is none.
func CopyOf(source types.NamespacedName, copies []*corev1.Secret) *corev1.Secret {
	for _, c := range copies {
		if of, ok := SourceOf(c); ok && of == source && c.DeletionTimestamp == nil {
			return c
		}
	}
	return nil
}

// HoldsCredentials reports whether a Secret is of a type that holds credentials of registries. No other Secret is copied: whoever may
// create a job need not be allowed to read it.
func HoldsCredentials(s *corev1.Secret) bool {
	return s.Type == corev1.SecretTypeDockerConfigJson || s.Type == corev1.SecretTypeDockercfg
}

// nameOf returns a stem, cut to fit the 253 characters of a name, with so many bytes of the hash of a text.
func nameOf(stem, text string, bytes int) string {
	sum := sha256.Sum256([]byte(text))
	return stem[:min(len(stem), 253-1-2*bytes)] + "-" + hex.EncodeToString(sum[:bytes])
}

// NewCopy returns a copy of a Secret without labels or annotations of its source, which may mean something to others. Its name is that of
// the source and six digits that depend on the namespace and name of the source; should another Secret have it, on how many do.
func NewCopy(source *corev1.Secret, namespace string, others []*corev1.Secret) *corev1.Secret {
	key := types.NamespacedName{Namespace: source.Namespace, Name: source.Name}
	name, hashed := "", key.String()
	for try := 1; name == "" || slices.ContainsFunc(others, func(s *corev1.Secret) bool { return s.Name == name }); try++ {
		name, hashed = nameOf(source.Name, hashed, 3), fmt.Sprintf("%s#%d", key, try)
	}
	c := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Annotations: map[string]string{
			keys.PullSecretSource: key.String(),
			keys.PullSecretMode:   string(v1beta1.ReferenceBatch),
		}},
		Type: source.Type,
	}
	return Refresh(c, source)
}

// Refresh returns the copy with the data that its source has now.
func Refresh(c, source *corev1.Secret) *corev1.Secret {
	c = c.DeepCopy()
	fresh := source.DeepCopy()
	c.Data, c.Immutable = fresh.Data, fresh.Immutable
	return c
}

// WithReferences returns the copy with the jobs that it is for.
func WithReferences(c *corev1.Secret, jobs []types.NamespacedName) *corev1.Secret {
	c = c.DeepCopy()
	var texts []string
	for _, key := range normal(jobs) {
		texts = append(texts, key.String())
	}
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, keys.PullSecretReferences, strings.Join(texts, ","))
	return c
}

// ReferenceTo returns how NodeImages name a copy.
func ReferenceTo(c *corev1.Secret) v1beta1.ReferenceObject {
	return v1beta1.ReferenceObject{Namespace: c.Namespace, Name: c.Name, Mode: v1beta1.ReferenceBatch}
}
