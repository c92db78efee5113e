package rights

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var record = flag.String("record", "", "folder in which suites have recorded what they used; the table is written anew from it")

const table = "testdata/uses.tsv"

// TestEveryRuleOfARoleHasAUse: each right that the manifests give to an account is used by a test, and by no other right's leave. Who takes
// the right away makes this test fail, which names the test that needs the right; who adds one that nothing needs does so, too.
func TestEveryRuleOfARoleHasAUse(t *testing.T) {
	rights, err := read("../../config")
	if err != nil {
		t.Fatal(err)
	}
	if len(rights) < 200 {
		t.Fatalf("the manifests give %d rights", len(rights))
	}
	if *record != "" {
		before, err := readTable(table)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		seen, err := recorded(*record, rights)
		if err != nil {
			t.Fatal(err)
		}
		if err := writeTable(table, before, seen); err != nil {
			t.Fatal(err)
		}
	}
	uses, err := readTable(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range append(check(rights, uses, excused()), contained(rights, excused())...) {
		t.Error(problem)
	}
	for name, e := range excused() {
		if err := exists(e.test); err != nil || e.why == "" {
			t.Errorf("the excuse of %s: %v", name, err)
		}
	}
	for _, u := range uses {
		if err := exists(u.test); err != nil {
			t.Errorf("the use of %s %s: %v", u.verb, u.resource, err)
		}
	}
}

// exists checks that there is a test, given as the folder of its suite and its name.
func exists(test string) error {
	folder, name, hasName := strings.Cut(test, " ")
	files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
	if err != nil || len(files) == 0 {
		return os.ErrNotExist
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !hasName || strings.Contains(string(text), "func "+name+"(") {
			return nil
		}
	}
	return &os.PathError{Op: "finding " + name + " in", Path: folder, Err: os.ErrNotExist}
}

// TestTheCheckOfRightsFails if a right is taken away or added, whichever it is.
func TestTheCheckOfRightsFails(t *testing.T) {
	rights, err := read("../../config")
	if err != nil {
		t.Fatal(err)
	}
	uses, err := readTable(table)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rights {
		if r.account == users {
			continue
		}
		less := slices.Delete(slices.Clone(rights), i, i+1)
		if r.verb == "get" { // who may list has no need of it
			less = slices.DeleteFunc(less, func(other right) bool { return other.needed() == r.needed() && other.file == r.file })
		}
		if len(check(less, uses, excused())) == 0 {
			t.Errorf("nobody misses the right %s", r)
		}
	}
	added := right{account: "kruise-system/kruise-manager", file: "rbac/manager_role.yaml", role: "kruise-manager-role", verb: "delete", resource: "nodes"}
	if len(check(append(rights, added), uses, excused())) == 0 {
		t.Errorf("nobody sees that nothing needs the right %s", added)
	}
}

// TestTheManagersMayPatchTheCRDsThatTheyConvert, which are those of two served versions, and no others.
func TestTheManagersMayPatchTheCRDsThatTheyConvert(t *testing.T) {
	rights, err := read("../../config")
	if err != nil {
		t.Fatal(err)
	}
	for account, pattern := range map[string]string{
		"kruise-system/kruise-manager": "../../config/crd/bases/*.yaml", "kruise-rollout/kruise-rollout": "../../config/rollouts/crd/*.yaml",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("there are no CRDs %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			group, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
			u := use{account: account, verb: "patch", group: "apiextensions.k8s.io", resource: "customresourcedefinitions", name: plural + "." + group}
			isConverted := strings.Contains(string(text), "strategy: Webhook")
			if may := len(rightsFor(rights, u)) > 0; may != isConverted {
				t.Errorf("%s may patch CRD %s: %t, want %t", account, u.name, may, isConverted)
			}
		}
	}
}
