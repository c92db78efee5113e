package release

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

// Planned returns how many of replicas Pods a step updates, those of earlier steps included: the number or the percentage, rounded up, and
// at most all. 45% of 10 is 5. An error means that the value is neither a number nor a percentage.
func Planned(step *intstr.IntOrString, replicas int32) (int32, error) {
	if step == nil {
		return 0, fmt.Errorf("a step says no replicas")
	}
	n, err := budget.Scaled(step, int(replicas), budget.Up)
	if err != nil {
		return 0, err
	}
	return min(max(int32(n), 0), replicas), nil
}

// DeploymentLimit returns how many Pods of a Deployment a step of partition style updates. A percentage other than 100% leaves one old Pod,
// so that a rollback has somewhere to begin: 95% of 10 is 9, not 10, and 90% of 3 is 2.
func DeploymentLimit(step *intstr.IntOrString, replicas int32) (int32, error) {
	n, err := Planned(step, replicas)
	if err == nil && step.Type == intstr.String && !isAll(step) && replicas > 1 {
		n = min(n, replicas-1)
	}
	return n, err
}

// isAll tells whether a step is literally 100%.
func isAll(step *intstr.IntOrString) bool {
	return step != nil && step.Type == intstr.String && step.StrVal == "100%"
}

// CloneSetPartition returns the partition that keeps the Pods of a CloneSet old that a step does not update. A step by percentage gives a
// percentage, so that the ratio survives scaling, but only one that keeps exactly as many: of 101 Pods no percentage keeps one, so the
// partition is the number.
func CloneSetPartition(step *intstr.IntOrString, replicas int32) (intstr.IntOrString, error) {
	n, err := Planned(step, replicas)
	if err != nil {
		return intstr.IntOrString{}, err
	}
	stable := replicas - n
	if step.Type == intstr.Int {
		return intstr.FromInt32(stable), nil
	}
	percent := int32(0)
	switch {
	case n == 0 && stable == 0: // no Pods at all
		percent = 100 - percentOf(step)
	case stable >= replicas:
		percent = 100
	case stable > 0:
		percent = max(stable*100/replicas, 1)
	}
	partition := intstr.FromString(strconv.Itoa(int(percent)) + "%")
	if kept, err := budget.Partition(&partition, int(replicas)); err != nil || int32(kept) != stable {
		return intstr.FromInt32(stable), nil
	}
	return partition, nil
}

// percentOf returns a percentage without its sign, at most 100.
func percentOf(step *intstr.IntOrString) int32 {
	n, err := budget.Scaled(step, 100, budget.Up)
	if err != nil {
		return 0
	}
	return int32(min(n, 100))
}

// Progress is what is seen of the Pods that a batch updates.
type Progress struct {
	// Updated, Ready are the updated Pods, and those of them that are ready; of styles that count available Pods, those.
	Updated, Ready int32
	// Labelled are the live Pods with the label of the release; it counts only if NeedLabels.
	Labelled   int32
	NeedLabels bool
}

// BatchReady tells whether a batch of planned Pods is ready: all are updated, all but those that the threshold forgives are ready, and at
// least one is. With threshold 20%, 5 updated Pods of which 4 are ready are enough for 5. An empty message means that it is ready.
func BatchReady(p Progress, planned int32, threshold *intstr.IntOrString) (message string) {
	forgiven := 0
	if threshold != nil {
		n, err := budget.Scaled(threshold, int(p.Updated), budget.Up)
		if err != nil {
			return fmt.Sprintf("failureThreshold: %v", err)
		}
		forgiven = n
	}
	switch {
	case p.Updated < planned:
		return fmt.Sprintf("%d of %d Pods are updated", p.Updated, planned)
	case int64(forgiven)+int64(p.Ready) < int64(planned):
		return fmt.Sprintf("%d of %d updated Pods are ready, and %d may be not ready", p.Ready, p.Updated, forgiven)
	case planned > 0 && p.Ready == 0:
		return "none of the updated Pods is ready"
	case p.NeedLabels && p.Labelled < planned:
		return fmt.Sprintf("%d of %d Pods have the label of the release", p.Labelled, planned)
	}
	return ""
}

// Batches returns the batch, counted from 1, of each updated Pod that has none yet. Given says how many live updated Pods have each batch,
// targets how many Pods each batch up to the current one updates, those of earlier batches included. Pods fill batches from the current one
// down: of 5 Pods with targets 1 and 5, four are of batch 2 and one of batch 1. Pods over the targets get 0.
func Batches(targets []int32, given map[int32]int32, unlabelled int) []int32 {
	out := make([]int32, 0, unlabelled)
	for b := len(targets); b >= 1; b-- {
		room := targets[b-1]
		if b > 1 {
			room -= targets[b-2]
		}
		for room -= given[int32(b)]; room > 0 && len(out) < unlabelled; room-- {
			out = append(out, int32(b))
		}
	}
	for len(out) < unlabelled {
		out = append(out, 0)
	}
	return out
}

// RolledBack returns how many of replicas Pods have the wanted revision after a step of a rollback in batches, when kept of them had it
// before it began: these, and the step's share of the others. Of 20 Pods of which 10 were kept, 20% comes to 12. It is never more than
// replicas, for the workload may have been scaled down since the kept ones were counted.
func RolledBack(step *intstr.IntOrString, replicas, kept int32) (int32, error) {
	back, err := Planned(step, max(replicas-kept, 0))
	return min(kept+back, replicas), err
}
