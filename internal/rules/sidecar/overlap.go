package sidecar

import (
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/overlap"
)

// MayShare reports whether one Pod could be selected by both SidecarSets. It is false only where that can be excluded by the selectors alone.
func MayShare(a, b *v1beta1.SidecarSetSpec) bool {
	return overlap.MayMeet(a.Selector, b.Selector) && overlap.MayMeet(a.NamespaceSelector, b.NamespaceSelector)
}
