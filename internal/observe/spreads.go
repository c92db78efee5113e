package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// BySpread is the index of Pods by the WorkloadSpread that their annotation names.
const BySpread = "kruise.spread"

// AddSpreadIndex adds the index BySpread.
func AddSpreadIndex(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Pod{}, BySpread, SpreadKeys); err != nil {
		return fmt.Errorf("indexing Pods by their WorkloadSpreads: %w", err)
	}
	return nil
}

// SpreadKeys returns the keys of a Pod in the index BySpread.
func SpreadKeys(object client.Object) []string {
	text := object.GetAnnotations()[keys.MatchedWorkloadSpread]
	var matched struct{ Name string }
	if text == "" || json.Unmarshal([]byte(text), &matched) != nil || matched.Name == "" {
		return nil
	}
	return []string{matched.Name}
}

// SpreadPods returns the Pods of a namespace whose annotations name a WorkloadSpread.
func (r Reader) SpreadPods(ctx context.Context, namespace, spread string) ([]*corev1.Pod, error) {
	options := []client.ListOption{client.InNamespace(namespace)}
	if r.Indexed {
		options = append(options, client.MatchingFields{BySpread: spread})
	}
	var list corev1.PodList
	pods, err := List(ctx, r, &list, &list.Items, options...)
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !slices.Contains(SpreadKeys(p), spread) }), err
}

// Spreads returns the WorkloadSpreads of a namespace in the order of their names.
func (r Reader) Spreads(ctx context.Context, namespace string) ([]*v1beta1.WorkloadSpread, error) {
	var list v1beta1.WorkloadSpreadList
	spreads, err := List(ctx, r, &list, &list.Items, client.InNamespace(namespace))
	slices.SortFunc(spreads, func(a, b *v1beta1.WorkloadSpread) int { return strings.Compare(a.Name, b.Name) })
	return spreads, err
}
