package compat_test

import (
	"os"
	"regexp"
	"testing"
)

func TestManifestsNameTheVersionThatMakeImageBuilds(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^VERSION := (v\S+)$`).FindSubmatch(makefile)
	if found == nil {
		t.Fatal("the Makefile has no VERSION")
	}
	for _, path := range []string{"../../config/manager/kustomization.yaml", "../../config/daemon/kustomization.yaml"} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tag := regexp.MustCompile(`newTag: (\S+?)}`).FindSubmatch(content)
		if len(tag) != 2 || string(tag[1]) != string(found[1]) {
			t.Errorf("%s names the tag %q, want %s", path, tag, found[1])
		}
	}
}
