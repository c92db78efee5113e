package pod_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

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

func TestSuffixesOfManyTriesDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uid := rapid.String().Draw(t, "uid")
		seen := sets.New[string]()
		for try := range uint64(200) {
			suffix := pod.Suffix(try, uid)
			if len(suffix) != 5 || strings.Trim(suffix, "bcdfghjklmnpqrstvwxz2456789") != "" {
				t.Fatalf("%q is not 5 characters of the alphabet", suffix)
			}
			if again := pod.Suffix(try, uid); again != suffix {
				t.Fatalf("the same try gives %q and %q", suffix, again)
			}
			seen.Insert(suffix)
		}
		if len(seen) < 199 { // of 14 million, two may be the same by chance
			t.Fatalf("200 tries give %d suffixes", len(seen))
		}
	})
}

func TestSuffixesOfOtherOwnersAreOthers(t *testing.T) {
	seen := sets.New[string]()
	for uid := range 100 {
		seen.Insert(pod.Suffix(0, fmt.Sprint(uid)))
	}
	if len(seen) != 100 {
		t.Errorf("100 owners begin with %d suffixes", len(seen))
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
