package order

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/test/kit/build"
)

// row returns Pods named web-000 and so on, all alike, of which the last so many carry foo=bar.
func row(total, matching int) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, total)
	for i := range total {
		b := build.Pod(fmt.Sprintf("web-%03d", i)).Node("n1").Ready(build.Start())
		if i >= total-matching {
			b.Label("foo", "bar")
		}
		pods = append(pods, b.Obj())
	}
	return pods
}

func fooBar() pub.UpdateScatterStrategy {
	return pub.UpdateScatterStrategy{{Key: "foo", Value: "bar"}}
}

// positions returns the places, from 1, of the Pods that carry foo=bar.
func positions(pods []*corev1.Pod) []int {
	var at []int
	for i, p := range pods {
		if p.Labels["foo"] == "bar" {
			at = append(at, i+1)
		}
	}
	return at
}

func TestScatterPositions(t *testing.T) {
	cases := []struct {
		total, matching int
		want            []int
	}{
		{10, 1, []int{10}}, // one alone is left where it is
		{10, 2, []int{1, 10}},
		{10, 3, []int{1, 6, 10}},
		{10, 4, []int{1, 4, 7, 10}},
		{10, 5, []int{1, 3, 5, 7, 10}},
		{10, 6, []int{1, 3, 5, 7, 9, 10}},
		{10, 8, []int{1, 2, 3, 4, 6, 7, 8, 10}},
		{10, 9, []int{2, 3, 4, 5, 6, 7, 8, 9, 10}}, // one other alone, too
		{10, 0, nil},
		{20, 5, []int{1, 6, 11, 16, 20}},
		{100, 3, []int{1, 51, 100}},
		{9, 6, []int{1, 2, 4, 5, 7, 9}},
		{9, 3, []int{1, 5, 9}},
		{8, 5, []int{1, 3, 5, 7, 8}},
		{6, 4, []int{1, 2, 4, 6}},
		{5, 3, []int{1, 3, 5}},
		{5, 2, []int{1, 5}},
	}
	for _, tc := range cases {
		t.Run(fmt.Sprintf("%d of %d match", tc.matching, tc.total), func(t *testing.T) {
			all := row(tc.total, tc.matching)
			if diff := cmp.Diff(tc.want, positions(scattered(t, all, all))); diff != "" {
				t.Errorf("positions (-want +got):\n%s", diff)
			}
			// A controller updates some, and sorts what is left anew.
			for _, batch := range []int{1, 2, 3} {
				var updated []*corev1.Pod
				for left := all; len(left) > 0; {
					left = scattered(t, left, all)
					n := min(batch, len(left))
					updated, left = append(updated, left[:n]...), left[n:]
				}
				if diff := cmp.Diff(tc.want, positions(updated)); diff != "" {
					t.Errorf("positions when %d are updated at a time (-want +got):\n%s", batch, diff)
				}
			}
		})
	}
}

func scattered(t *testing.T, candidates, all []*corev1.Pod) []*corev1.Pod {
	t.Helper()
	got, err := Sort(candidates, all, Strategy{Scatter: fooBar()})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestScatterOfWhatIsLeft(t *testing.T) {
	all := row(10, 3)
	cases := map[string]struct {
		updated []int
		want    []int
	}{
		"updated in this order: it goes on":                  {[]int{7, 0, 1, 2}, []int{2, 6}},
		"none of those that match are updated: spread anew":  {[]int{0, 1, 2, 3}, []int{1, 4, 6}},
		"all but one of those that match are updated":        {[]int{7, 8}, []int{8}},
		"all that match are updated":                         {[]int{7, 8, 9}, nil},
		"all others are updated: there is nothing to spread": {[]int{0, 1, 2, 3, 4, 5, 6}, []int{1, 2, 3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var left []*corev1.Pod
			for i, p := range all {
				if !slices.Contains(tc.updated, i) {
					left = append(left, p)
				}
			}
			if diff := cmp.Diff(tc.want, positions(scattered(t, left, all))); diff != "" {
				t.Errorf("positions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScatterOfSeveralTerms(t *testing.T) {
	var all []*corev1.Pod
	for i := range 10 {
		b := build.Pod(fmt.Sprintf("web-%03d", i)).Node("n1").Ready(build.Start())
		switch {
		case i < 2:
			b.Label("zone", "a")
		case i < 5:
			b.Label("foo", "bar")
		}
		all = append(all, b.Obj())
	}
	zone, foo, none := pub.UpdateScatterTerm{Key: "zone", Value: "a"}, fooBar()[0], pub.UpdateScatterTerm{Key: "zone", Value: "b"}
	inOrder := func(s ...pub.UpdateScatterTerm) []string {
		got, err := Sort(all, all, Strategy{Scatter: s})
		if err != nil {
			t.Fatal(err)
		}
		return build.Names(got)
	}
	want := build.Names(scatterOne(scatterOne(all, all, foo), all, zone))
	for name, got := range map[string][]string{
		"the term with more Pods is first, listed last":   inOrder(zone, foo),
		"the term with more Pods is first, listed first":  inOrder(foo, zone),
		"a term that matches nothing makes no difference": inOrder(none, zone, foo),
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
