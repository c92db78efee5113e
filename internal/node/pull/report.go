package pull

import (
	"cmp"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// Report returns the status of a NodeImage: of every round of its spec what the daemon has seen, and of those that it knows nothing of what the
// status says already. Tags that the spec has no longer are left out, and the rest of the status stays.
func Report(image *v1beta1.NodeImage, seen map[Round]v1beta1.ImageTagStatus) v1beta1.NodeImageStatus {
	out := v1beta1.NodeImageStatus{FirstSyncStatus: image.Status.FirstSyncStatus}
	for repository, spec := range image.Spec.Images {
		var tags []v1beta1.ImageTagStatus
		for _, tag := range spec.Tags {
			out.Desired++
			round := Round{repository, tag.Tag, tag.Version}
			status := told(image, round)
			if now, ok := seen[round]; ok && (status == nil || status.CompletionTime == nil) {
				status = &now
			}
			if status == nil {
				continue
			}
			tags = append(tags, *status)
			count(&out, status.Phase)
		}
		if len(tags) == 0 {
			continue
		}
		slices.SortFunc(tags, func(a, b v1beta1.ImageTagStatus) int { return cmp.Compare(a.Tag, b.Tag) })
		if out.ImageStatuses == nil {
			out.ImageStatuses = map[string]v1beta1.ImageStatus{}
		}
		out.ImageStatuses[repository] = v1beta1.ImageStatus{Tags: tags}
	}
	return out
}

// underWay reports whether any round has not ended.
func underWay(seen map[Round]v1beta1.ImageTagStatus) bool {
	for _, status := range seen {
		if status.CompletionTime == nil {
			return true
		}
	}
	return false
}

func count(s *v1beta1.NodeImageStatus, phase v1beta1.ImagePullPhase) {
	switch phase {
	case v1beta1.ImagePhaseSucceeded:
		s.Succeeded++
	case v1beta1.ImagePhaseFailed:
		s.Failed++
	case v1beta1.ImagePhasePulling:
		s.Pulling++
	case v1beta1.ImagePhaseWaiting:
		s.Waiting++
	}
}

// patchOf returns the merge patch that brings the status before to the status after, if the object is still at the given resource version. All
// numbers are said, because an object that nobody has reported on has none; of the repositories only those that differ.
func patchOf(resourceVersion string, before, after v1beta1.NodeImageStatus) ([]byte, error) {
	repositories := map[string]*v1beta1.ImageStatus{}
	for name := range before.ImageStatuses {
		if _, stays := after.ImageStatuses[name]; !stays {
			repositories[name] = nil
		}
	}
	for name, status := range after.ImageStatuses {
		if was, known := before.ImageStatuses[name]; !known || !equality.Semantic.DeepEqual(was, status) {
			repositories[name] = &status
		}
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": resourceVersion},
		"status": map[string]any{
			"desired": after.Desired, "succeeded": after.Succeeded, "failed": after.Failed, "pulling": after.Pulling, "waiting": after.Waiting,
			"imageStatuses": repositories,
		},
	})
}

// Ended returns the rounds that have ended since the status before, with their spec.
func Ended(before, after *v1beta1.NodeImage) map[Round]v1beta1.ImageTagStatus {
	ended := map[Round]v1beta1.ImageTagStatus{}
	for repository, status := range after.Status.ImageStatuses {
		for _, tag := range status.Tags {
			round := Round{repository, tag.Tag, tag.Version}
			if was := told(before, round); tag.CompletionTime != nil && (was == nil || was.CompletionTime == nil) {
				ended[round] = tag
			}
		}
	}
	return ended
}
