package pod_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

func TestNamesRepeatAndDiffer(t *testing.T) {
	none := func() sets.Set[string] { return sets.New[string]() }
	first := pod.NewName("agent", none(), "uid", "n1")
	if again := pod.NewName("agent", none(), "uid", "n1"); again != first {
		t.Errorf("asked again for the same Pod: %s, then %s", first, again)
	}
	if taken := pod.NewName("agent", sets.New(first), "uid", "n1"); taken == first {
		t.Errorf("%s is in use and was given again", taken)
	}
	// Parts do not run into each other.
	if pod.NewName("agent", none(), "uid", "n1") == pod.NewName("agent", none(), "uidn", "1") {
		t.Error("two purposes have one name")
	}
	used := none()
	for i := range 1000 {
		pod.NewName("agent", used, "uid", strings.Repeat("n", i))
	}
	if len(used) != 1000 {
		t.Errorf("1000 Pods have %d names", len(used))
	}
}

func TestNamesAreHostNames(t *testing.T) {
	for name, owner := range map[string]string{
		"short": "a", "as long as a label": strings.Repeat("a", 63), "cut at a dash": strings.Repeat("a", 56) + "-bbbb",
	} {
		t.Run(name, func(t *testing.T) {
			got := pod.NewName(owner, sets.New[string](), "uid")
			if problems := validation.IsDNS1123Label(got); problems != nil || strings.Contains(got, "--") {
				t.Errorf("%s: %v", got, problems)
			}
		})
	}
}
