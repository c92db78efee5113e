package release

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/internal/rules/budget"
)

func value(v any) *intstr.IntOrString {
	out := intstr.IntOrString{}
	switch v := v.(type) {
	case int:
		out = intstr.FromInt32(int32(v))
	case string:
		out = intstr.FromString(v)
	default:
		return nil
	}
	return &out
}

func TestTargets(t *testing.T) {
	cases := map[string]struct {
		step       any
		replicas   int32
		planned    int32
		deployment int32
		partition  any
	}{
		"a number":            {1, 10, 1, 1, 9},
		"45% of 10 rounds up": {"45%", 10, 5, 5, "50%"},
		"95% of 10 leaves a Deployment one old Pod": {"95%", 10, 10, 9, "0%"},
		"all":                              {"100%", 10, 10, 10, "0%"},
		"90% of 3 leaves a Deployment one": {"90%", 3, 3, 2, "0%"},
		"30% of 10 keeps 70%":              {"30%", 10, 3, 3, "70%"},
		"99% of 101 keeps one, which no percentage does": {"99%", 101, 100, 100, 1},
		"more than there are":                            {12, 10, 10, 10, 0},
		"half of one Pod":                                {"50%", 1, 1, 1, "0%"},
		"half of no Pods":                                {"50%", 0, 0, 0, "50%"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			planned, err := Planned(value(tc.step), tc.replicas)
			if err != nil || planned != tc.planned {
				t.Errorf("planned %d, %v, want %d", planned, err, tc.planned)
			}
			if n, err := DeploymentLimit(value(tc.step), tc.replicas); err != nil || n != tc.deployment {
				t.Errorf("Deployment %d, %v, want %d", n, err, tc.deployment)
			}
			got, err := CloneSetPartition(value(tc.step), tc.replicas)
			if diff := cmp.Diff(*value(tc.partition), got); err != nil || diff != "" {
				t.Errorf("partition %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestPartitionsKeepWhatTheStepKeeps is trap T8: a percentage that keeps one Pod more would hang the batch.
func TestPartitionsKeepWhatTheStepKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.Int32Range(1, 3000).Draw(t, "replicas")
		step := value(rapid.SampledFrom([]any{rapid.IntRange(1, 3000).Draw(t, "n"), rapid.StringMatching(`(100|[1-9][0-9]?)%`).Draw(t, "percent")}).Draw(t, "step"))
		planned, err := Planned(step, replicas)
		if err != nil {
			t.Fatal(err)
		}
		partition, err := CloneSetPartition(step, replicas)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := budget.Partition(&partition, int(replicas))
		if err != nil || int32(kept) != replicas-planned {
			t.Fatalf("partition %s of %d keeps %d, %v; the step %s keeps %d", partition.String(), replicas, kept, err, step.String(), replicas-planned)
		}
	})
}

func TestBatchReady(t *testing.T) {
	cases := map[string]struct {
		seen      Progress
		planned   int32
		threshold any
		want      string
	}{
		"all ready":                              {Progress{Updated: 5, Ready: 5}, 5, nil, ""},
		"too few are updated":                    {Progress{Updated: 4, Ready: 4}, 5, nil, "4 of 5 Pods are updated"},
		"one is not ready":                       {Progress{Updated: 5, Ready: 4}, 5, nil, "4 of 5 updated Pods are ready, and 0 may be not ready"},
		"one is not ready and 20% are forgiven":  {Progress{Updated: 5, Ready: 4}, 5, "20%", ""},
		"two are not ready and 20% are forgiven": {Progress{Updated: 5, Ready: 3}, 5, "20%", "3 of 5 updated Pods are ready, and 1 may be not ready"},
		"all are forgiven and none is ready":     {Progress{Updated: 5}, 5, "100%", "none of the updated Pods is ready"},
		"a label is missing":                     {Progress{Updated: 5, Ready: 5, Labelled: 4, NeedLabels: true}, 5, nil, "4 of 5 Pods have the label of the release"},
		"no Pods are wanted":                     {Progress{}, 0, nil, ""},
		"more are updated than planned":          {Progress{Updated: 9, Ready: 5}, 5, nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, BatchReady(tc.seen, tc.planned, value(tc.threshold))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBatches(t *testing.T) {
	cases := map[string]struct {
		targets    []int32
		given      map[int32]int32
		unlabelled int
		want       []int32
	}{
		"the first batch":                            {[]int32{1}, nil, 1, []int32{1}},
		"the second fills before the first":          {[]int32{1, 5}, nil, 5, []int32{2, 2, 2, 2, 1}},
		"the second beside one of the first":         {[]int32{1, 5}, map[int32]int32{1: 1}, 4, []int32{2, 2, 2, 2}},
		"a Pod of the first batch that was replaced": {[]int32{1, 5}, map[int32]int32{2: 4}, 1, []int32{1}},
		"more Pods than planned":                     {[]int32{1}, nil, 2, []int32{1, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Batches(tc.targets, tc.given, tc.unlabelled)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRolledBack(t *testing.T) {
	for _, tc := range []struct {
		step                 string
		replicas, kept, want int32
	}{
		{"20%", 20, 10, 12}, {"50%", 20, 10, 15}, {"100%", 20, 10, 20},
		{"20%", 8, 10, 8}, // scaled down since they were counted
	} {
		if n, err := RolledBack(value(tc.step), tc.replicas, tc.kept); err != nil || n != tc.want {
			t.Errorf("%s of %d Pods of which %d were kept comes to %d, %v, want %d", tc.step, tc.replicas, tc.kept, n, err, tc.want)
		}
	}
}
