package ordinal

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
)

// slots makes slots of words: "new", "old" or "none", with "leaving" and "first", which gives the Pod the label that goes first.
func slots(words ...string) []Slot {
	var out []Slot
	for i, word := range words {
		s := Slot{Updated: strings.Contains(word, "new"), Leaving: strings.Contains(word, "leaving")}
		if word != "none" {
			s.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), Labels: map[string]string{}}}
			if strings.Contains(word, "first") {
				s.Pod.Labels["zone"] = "b"
			}
		}
		out = append(out, s)
	}
	return out
}

func byZone() *pub.UpdatePriorityStrategy {
	return &pub.UpdatePriorityStrategy{WeightPriority: []pub.UpdatePriorityWeightTerm{
		{Weight: 100, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": "b"}}},
	}}
}

func TestReach(t *testing.T) {
	for name, tc := range map[string]struct {
		slots     []Slot
		partition int
		unordered bool
		want      []int
	}{
		"all, from the highest down":                   {slots: slots("old", "old", "new"), want: []int{2, 1, 0}},
		"those above the partition":                    {slots: slots("old", "old", "old", "old", "old"), partition: 3, want: []int{4, 3}},
		"a partition of more than there are":           {slots: slots("old", "old"), partition: 32767},
		"by priority":                                  {slots: slots("old", "old first", "old", "old first", "old"), partition: 3, unordered: true, want: []int{3, 1}},
		"an updated Pod keeps its place":               {slots: slots("new", "old first", "old", "old first", "old"), partition: 3, unordered: true, want: []int{0, 3}},
		"so does one on its way out":                   {slots: slots("old leaving", "old first", "old", "old first", "old"), partition: 3, unordered: true, want: []int{0, 3}},
		"and one that comes back updated":              {slots: slots("none", "old first", "old", "old first", "old"), partition: 3, unordered: true, want: []int{0, 3}},
		"but not one that comes back old":              {slots: slots("none", "new", "old", "old first", "new"), partition: 3, unordered: true, want: []int{4, 1}},
		"no priorities leave the order of the numbers": {slots: slots("old", "old", "old"), partition: 1, unordered: true, want: []int{2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Strategy{Partition: tc.partition, Unordered: tc.unordered}
			if tc.unordered {
				s.Priority = byZone()
			}
			got, err := Reach(tc.slots, s)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReachReportsASelectorThatCannotBeRead(t *testing.T) {
	s := Strategy{Unordered: true, Priority: &pub.UpdatePriorityStrategy{WeightPriority: []pub.UpdatePriorityWeightTerm{
		{MatchSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}},
	}}}
	if _, err := Reach(slots("old"), s); err == nil {
		t.Error("no error")
	}
}

func TestAtCurrent(t *testing.T) {
	for name, tc := range map[string]struct {
		slots     []Slot
		partition int
		unordered bool
		want      []bool
	}{
		"below the partition it comes back old":   {slots: slots("none", "none", "none"), partition: 2, want: []bool{true, true, false}},
		"a partition of more than there are":      {slots: slots("none", "none"), partition: 9, want: []bool{true, true}},
		"enough old ones are there":               {slots: slots("none", "old", "old", "old"), partition: 3, unordered: true, want: []bool{false, false, false, false}},
		"one old one is missing":                  {slots: slots("none", "old", "new", "old"), partition: 3, unordered: true, want: []bool{true, false, false, false}},
		"one old one and one new one are missing": {slots: slots("old", "new", "old", "none", "none"), partition: 3, unordered: true, want: []bool{false, false, false, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			got := AtCurrent(tc.slots, Strategy{Partition: tc.partition, Unordered: tc.unordered})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPartitionIsKept checks that whatever is missing, creating and updating as these rules say leaves as many old Pods as the partition asks
// for, of those that there were.
func TestPartitionIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"old", "old first", "new", "none", "old leaving"}), 0, 8).Draw(t, "slots")
		s := Strategy{Partition: rapid.IntRange(0, 9).Draw(t, "partition"), Unordered: rapid.Bool().Draw(t, "unordered"), Priority: byZone()}
		all := slots(words...)
		reach, err := Reach(all, s)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Unordered {
			if slices.ContainsFunc(reach, func(i int) bool { return i < s.Partition }) {
				t.Fatalf("%v with partition %d: update %v", words, s.Partition, reach)
			}
			return
		}
		newBefore := 0
		after := slices.Clone(all)
		for i, slot := range all {
			switch {
			case slot.Updated:
				newBefore++
			case slot.Leaving:
				after[i] = Slot{}
			case slices.Contains(reach, i):
				after[i].Updated = true
			}
		}
		old := 0
		for i, isAtCurrent := range AtCurrent(after, s) {
			if isAtCurrent || after[i].Pod != nil && !after[i].Updated {
				old++
			}
		}
		if old < min(s.Partition, len(all)-newBefore) {
			t.Fatalf("%v with partition %d leaves %d old Pods: update %v", words, s.Partition, old, reach)
		}
	})
}
