package observe

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// fewAnnotations is the size, in bytes of keys and values, up to which annotations are kept whatever they are. Most Pods have fewer.
const fewAnnotations = 2 << 10

// AnnotationKeys are the keys of annotations that users' objects name, as the policies of PodProbeMarkers do: caches keep these
// annotations of all Pods, also of those with too many to keep all. A key that is named later shows in such a Pod with its next change.
// The zero AnnotationKeys keep all annotations until they are complete.
type AnnotationKeys struct {
	mu         sync.RWMutex
	isComplete bool
	named      map[string]bool
}

// Name adds keys.
func (k *AnnotationKeys) Name(more ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.named == nil {
		k.named = map[string]bool{}
	}
	for _, key := range more {
		k.named[key] = true
	}
}

// Complete says that the keys of all objects that are stored were added.
func (k *AnnotationKeys) Complete() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.isComplete = true
}

// kept returns those annotations of a Pod that a cache keeps.
func (k *AnnotationKeys) kept(all map[string]string) map[string]string {
	size := 0
	for key, value := range all {
		size += len(key) + len(value)
	}
	if size <= fewAnnotations {
		return all
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	if !k.isComplete {
		return all
	}
	out := map[string]string{}
	for key, value := range all {
		if isRead(key) || k.named[key] {
			out[key] = value
		}
	}
	return out
}

// isRead reports whether our own code reads an annotation of Pods by its key.
func isRead(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	switch key {
	case corev1.PodDeletionCost, corev1.MirrorPodAnnotationKey, "kubernetes.io/config.source":
		return true
	}
	return domain == "kruise.io" || strings.HasSuffix(domain, ".kruise.io")
}
