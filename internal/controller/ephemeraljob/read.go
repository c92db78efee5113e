package ephemeraljob

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/ephemeral"
)

// Snapshot is all that one pass reads.
type Snapshot struct {
	Job *v1alpha1.EphemeralJob
	// Pods are those of the namespace that the selector matches, and those that have containers of the job; none once the job has finished.
	Pods []*corev1.Pod
	// Refused are Pods for which the API server refused the containers, and until when they are left alone for that.
	Refused map[types.UID]time.Time
	Now     time.Time
}

// byJob is the index of Pods by the UIDs of the EphemeralJobs that have added containers to them.
const byJob = "kruise.ephemeralJobUID"

func addIndex(ctx context.Context, indexer client.FieldIndexer) error {
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

// read makes every read of a pass. Without indexes it reads all Pods of the namespace.
func read(ctx context.Context, r loop.Reads, job *v1alpha1.EphemeralJob) (Snapshot, error) {
	s := Snapshot{Job: job, Now: r.Now}
	selector, err := selectorOf(job)
	if job.DeletionTimestamp != nil || isFinished(job) || err != nil {
		return s, nil // Classify says what is wrong with the selector
	}
	queries := []client.ListOption{client.MatchingLabelsSelector{Selector: selector}, client.MatchingFields{byJob: string(job.UID)}}
	if !r.Indexed {
		queries = []client.ListOption{client.MatchingLabelsSelector{Selector: labels.Everything()}}
	}
	known := map[types.UID]bool{}
	for _, query := range queries {
		var list corev1.PodList
		pods, err := observe.List(ctx, r, &list, &list.Items, client.InNamespace(job.Namespace), query)
		if err != nil {
			return s, err
		}
		for _, p := range pods {
			if !known[p.UID] && (selector.Matches(labels.Set(p.Labels)) || ephemeral.Has(p, job.UID)) {
				known[p.UID] = true
				s.Pods = append(s.Pods, p)
			}
		}
	}
	return s, nil
}

// selectorOf returns the job's selector, which must not be empty.
func selectorOf(job *v1alpha1.EphemeralJob) (labels.Selector, error) {
	if s := job.Spec.Selector; s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return nil, errors.New("selector is empty: name the labels of the Pods")
	}
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading selector: %w", err)
	}
	return selector, nil
}
