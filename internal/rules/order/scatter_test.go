package order

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
)

// fleetOf returns Pods of which the last ones carry the label foo=bar.
func fleetOf(total, matching int) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range total {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p-%03d", i), Labels: map[string]string{}}}
		if i >= total-matching {
			p.Labels["foo"] = "bar"
		}
		pods = append(pods, p)
	}
	return pods
}

var fooBar = pub.UpdateScatterStrategy{{Key: "foo", Value: "bar"}}

// placesOf returns the places of the labelled Pods, counted from 1.
func placesOf(pods []*corev1.Pod) []int {
	var places []int
	for i, p := range pods {
		if p.Labels["foo"] == "bar" {
			places = append(places, i+1)
		}
	}
	return places
}

func TestScatter(t *testing.T) {
	cases := map[string]struct {
		total, matching int
		want            []int
	}{
		"3 of 10": {10, 3, []int{1, 6, 10}}, "2 of 10": {10, 2, []int{1, 10}}, "4 of 10": {10, 4, []int{1, 4, 7, 10}},
		"5 of 10": {10, 5, []int{1, 3, 5, 7, 10}}, "6 of 10": {10, 6, []int{1, 3, 5, 7, 9, 10}},
		"8 of 10": {10, 8, []int{1, 2, 3, 4, 6, 7, 8, 10}}, "5 of 20": {20, 5, []int{1, 6, 11, 16, 20}},
		"6 of 9": {9, 6, []int{1, 2, 4, 5, 7, 9}}, "3 of 9": {9, 3, []int{1, 5, 9}}, "5 of 8": {8, 5, []int{1, 3, 5, 7, 8}},
		"4 of 6": {6, 4, []int{1, 2, 4, 6}}, "3 of 5": {5, 3, []int{1, 3, 5}}, "2 of 5": {5, 2, []int{1, 5}}, "3 of 100": {100, 3, []int{1, 51, 100}},
		"one is not moved": {10, 1, []int{10}}, "all but one are not moved": {10, 9, []int{2, 3, 4, 5, 6, 7, 8, 9, 10}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pods := fleetOf(tc.total, tc.matching)
			if got := placesOf(scatter(pods, pods, fooBar)); !slices.Equal(got, tc.want) {
				t.Errorf("places are %v, want %v", got, tc.want)
			}
			// Updated one at a time, with what is left sorted anew each time, they go in the same order.
			var order []*corev1.Pod
			for left := pods; len(left) > 0; {
				next := scatter(left, pods, fooBar)[0]
				order = append(order, next)
				left = slices.DeleteFunc(slices.Clone(left), func(p *corev1.Pod) bool { return p == next })
			}
			if got := placesOf(order); !slices.Equal(got, tc.want) {
				t.Errorf("one at a time places are %v, want %v", got, tc.want)
			}
		})
	}
}

func TestScatterSpreadsAnewWhatWasUpdatedInAnotherOrder(t *testing.T) {
	pods := fleetOf(10, 3)
	left := append(slices.Clone(pods[4:7]), pods[7:]...) // four others are updated, none of the labelled ones
	if got, want := placesOf(scatter(left, pods, fooBar)), []int{1, 4, 6}; !slices.Equal(got, want) {
		t.Errorf("places are %v, want %v", got, want)
	}
}
