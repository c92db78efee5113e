package ephemeraljob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/ephemeral"
)

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	Job *v1alpha1.EphemeralJob
	// Pods are those of the namespace that the selector matches, and those that have containers of the job; none once the job is over.
	Pods []*corev1.Pod
	// Refused are Pods that the API server did not let have the containers, and until when they are left alone for that.
	Refused map[types.UID]time.Time
	Now     time.Time
}

// byJob is the index of Pods by the UIDs of the EphemeralJobs that have added containers to them.
const byJob = "kruise.ephemeralJobUID"

// AddIndex adds the index that Observe uses to a cache.
func AddIndex(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.Pod{}, byJob, func(object client.Object) []string {
		var out []string
		for _, job := range ephemeral.Jobs(object.(*corev1.Pod)) {
			out = append(out, string(job))
		}
		return out
	})
	if err != nil {
		return fmt.Errorf("indexing Pods by their EphemeralJobs: %w", err)
	}
	return nil
}

// Observe makes every read of a pass.
func Observe(ctx context.Context, r observe.Reader, job *v1alpha1.EphemeralJob) (Snapshot, error) {
	s := Snapshot{Job: job}
	selector, err := selectorOf(job)
	if job.DeletionTimestamp != nil || isOver(job) || err != nil {
		return s, nil // the state says what is wrong with the selector
	}
	known := map[types.UID]bool{}
	take := func(options ...client.ListOption) error {
		var list corev1.PodList
		if err := r.List(ctx, &list, append(options, client.InNamespace(job.Namespace))...); err != nil {
			return fmt.Errorf("listing Pods: %w", err)
		}
		for i := range list.Items {
			p := &list.Items[i]
			if !known[p.UID] && (selector.Matches(labels.Set(p.Labels)) || ephemeral.Has(p, job.UID)) {
				known[p.UID] = true
				s.Pods = append(s.Pods, p)
			}
		}
		return nil
	}
	if !r.Indexed {
		return s, take()
	}
	if err := take(client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		return Snapshot{}, err
	}
	return s, take(client.MatchingFields{byJob: string(job.UID)}, client.UnsafeDisableDeepCopy)
}

// selectorOf returns the job's selector, which matches something only if it is not empty.
func selectorOf(job *v1alpha1.EphemeralJob) (labels.Selector, error) {
	if s := job.Spec.Selector; s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return nil, fmt.Errorf("selector is empty: name the labels of the Pods")
	}
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading selector: %w", err)
	}
	return selector, nil
}
