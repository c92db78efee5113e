package pod_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

func TestSelector(t *testing.T) {
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		matches  bool
		all, bad bool
	}{
		"labels":                        {selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, matches: true},
		"other labels":                  {selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}},
		"one that would select all":     {selector: &metav1.LabelSelector{}, all: true},
		"none at all":                   {bad: false},
		"an operator that there is not": {selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := pod.Selector(tc.selector)
			if errors.Is(err, pod.ErrSelectsAll) != tc.all || (err != nil) != (tc.all || tc.bad) {
				t.Fatalf("the error is %v", err)
			}
			if err == nil && got.Matches(labels.Set{"app": "web"}) != tc.matches {
				t.Errorf("%s matches app=web: %v, want %v", got, !tc.matches, tc.matches)
			}
		})
	}
}
