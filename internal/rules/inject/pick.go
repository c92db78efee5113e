package inject

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// Choice says which revision of a SidecarSet a Pod gets.
type Choice int

const (
	// Current is the present spec.
	Current Choice = iota
	// Asked is the revision that the injection strategy asks for.
	Asked
	// Either is one or the other, by turns: the share of the Pods that get the revision is what the partition says.
	Either
)

// Choose returns which revision a Pod with these labels gets, and with Either the share of the Pods, in percent, that get the one asked
// for.
func Choose(c *Candidate, labels map[string]string) (Choice, int) {
	revision, update := c.Set.Spec.InjectionStrategy.Revision, c.Set.Spec.UpdateStrategy
	switch {
	case !AsksForRevision(revision):
		return Current, 0
	case update.Paused || revision.Policy != v1beta1.PartialSidecarSetInjectRevisionPolicy:
		return Asked, 0
	case update.Selector != nil && !c.updated.MatchesLabels(labels):
		return Asked, 0
	}
	percent, ok := percentOf(update.Partition)
	if !ok {
		return Current, 0
	}
	return Either, percent
}

// AsksForRevision reports whether a strategy names a revision.
func AsksForRevision(r *v1beta1.SidecarSetInjectRevision) bool {
	return r != nil && (text(r.RevisionName) != "" || text(r.CustomVersion) != "")
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func percentOf(partition *intstr.IntOrString) (int, bool) {
	if partition == nil || partition.Type != intstr.String {
		return 0, false
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(partition.StrVal, "%"))
	return percent, err == nil
}

// IsTurnOfAsked reports whether, of Pods that are counted from 0, the n-th gets the revision that is asked for, such that at any time their
// share is as near as can be to what is wanted: with 70 percent, three of any ten Pods get the present spec.
func IsTurnOfAsked(n, percent int) bool {
	present := 100 - percent
	return (n+1)*present/100 == n*present/100
}

// Find returns the revision that a strategy asks for: that of the name, or the newest of the custom version. Only those of the SidecarSet
// itself count.
func Find(set *v1beta1.SidecarSet, revisions []*appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	asked := set.Spec.InjectionStrategy.Revision
	own := slices.DeleteFunc(slices.Clone(revisions), func(r *appsv1.ControllerRevision) bool {
		return r.Labels[keys.SidecarSetName] != set.Name
	})
	if name := text(asked.RevisionName); name != "" {
		for _, r := range own {
			if r.Name == name {
				return r, nil
			}
		}
		return nil, fmt.Errorf("there is no revision %s of it, which injectionStrategy.revision.revisionName asks for", name)
	}
	version := text(asked.CustomVersion)
	var newest *appsv1.ControllerRevision
	for _, r := range own {
		if r.Labels[keys.SidecarSetCustomVersion] == version && (newest == nil || r.Revision > newest.Revision) {
			newest = r
		}
	}
	if newest == nil {
		return nil, fmt.Errorf("there is no revision of it with the version %s, which injectionStrategy.revision.customVersion asks for", version)
	}
	return newest, nil
}
