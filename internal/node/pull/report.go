package pull

import (
	"cmp"
	"slices"

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
