package steer

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
)

// Labelled returns how many live updated Pods have the label of a release.
func Labelled(k Kind, o Objects, id string) (n int32) {
	isUpdated := k.Updated(o)
	for _, p := range o.Pods {
		if pod.IsActive(p) && p.Labels[keys.RolloutID] == id && isUpdated(p) {
			n++
		}
	}
	return n
}

// BatchLabels returns the changes that give updated Pods the labels of their release and of the batch that updated them. Targets are how
// many Pods each batch up to the current one updates, those of earlier batches included. Pods over the targets get no label: they are of no
// batch yet. The Pods of a batch also get its metadata, which is by batch as well.
func BatchLabels(k Kind, o Objects, id string, targets []int32, metadata []*v1beta1.PodMetadata) []Change {
	isUpdated, given, unlabelled := k.Updated(o), map[int32]int32{}, []*corev1.Pod(nil)
	var out []Change
	for _, p := range o.Pods {
		if !pod.IsActive(p) || !isUpdated(p) {
			continue
		}
		batch, err := strconv.Atoi(p.Labels[keys.RolloutBatchID])
		if p.Labels[keys.RolloutID] == id && err == nil && batch >= 1 { // also of a step that is gone back from
			given[int32(batch)]++
			if after := dressed(p, of(metadata, batch)); after != p && !same(p, after) {
				out = append(out, Change{Before: p, After: after, What: "give it the metadata of its batch"})
			}
		} else {
			unlabelled = append(unlabelled, p)
		}
	}
	// Those that a rollback in batches has brought back come first, then the newer ones: the older ones were updated earlier. Names tell
	// Pods of one second apart.
	slices.SortFunc(unlabelled, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Labels[keys.NoNeedUpdate], b.Labels[keys.NoNeedUpdate]),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i, batch := range release.Batches(targets, given, len(unlabelled)) {
		if batch == 0 {
			continue
		}
		number := strconv.Itoa(int(batch))
		labels := map[string]string{keys.RolloutID: id, keys.RolloutBatchID: number}
		c := labelPod(unlabelled[i], labels, "label it with batch "+number)
		c.After = dressed(c.After.(*corev1.Pod), of(metadata, int(batch)))
		out = append(out, c)
	}
	return out
}

// KeptLabels returns the changes that label the Pods which are at the wanted revision when a rollback in batches begins. They lose the
// labels of a rollback of the same name: its batches are not those of this one.
func KeptLabels(k Kind, o Objects, id string) []Change {
	var out []Change
	isUpdated := k.Updated(o)
	for _, p := range o.Pods {
		if !pod.IsActive(p) || !isUpdated(p) || p.Labels[keys.NoNeedUpdate] == id && p.Labels[keys.RolloutID] != id {
			continue
		}
		c := labelPod(p, map[string]string{keys.NoNeedUpdate: id}, "label it as not to be updated")
		if labels := c.After.GetLabels(); labels[keys.RolloutID] == id {
			delete(labels, keys.RolloutID)
			delete(labels, keys.RolloutBatchID)
		}
		out = append(out, c)
	}
	return out
}

func labelPod(before *corev1.Pod, labels map[string]string, what string) Change {
	after := before.DeepCopy()
	if after.Labels = maps.Clone(after.Labels); after.Labels == nil {
		after.Labels = map[string]string{}
	}
	maps.Copy(after.Labels, labels)
	return Change{Before: before, After: after, What: what}
}
