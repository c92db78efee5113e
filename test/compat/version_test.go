package compat_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
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
	for _, path := range []string{
		"../../config/manager/kustomization.yaml", "../../config/daemon/kustomization.yaml", "../../config/rollouts/kustomization.yaml",
	} {
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

// TestTheDaemonMountsTheFoldersOfRuntimesAlone: whoever gets into the daemon must find no other socket of the node, and no writable folder.
func TestTheDaemonMountsTheFoldersOfRuntimesAlone(t *testing.T) {
	content, err := os.ReadFile("../../config/daemon/daemon.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var daemon appsv1.DaemonSet
	if err := yaml.UnmarshalStrict(content, &daemon); err != nil {
		t.Fatal(err)
	}
	spec := daemon.Spec.Template.Spec
	var mounted []string
	for _, v := range spec.Volumes {
		if v.HostPath == nil {
			t.Errorf("volume %s is not of the node: say here why the daemon needs it", v.Name)
			continue
		}
		mounted = append(mounted, v.HostPath.Path)
	}
	if diff := cmp.Diff([]string{"/run/containerd", "/run/crio"}, mounted); diff != "" {
		t.Errorf("folders of the node (-want +got):\n%s", diff)
	}
	for _, m := range spec.Containers[0].VolumeMounts {
		if !m.ReadOnly {
			t.Errorf("%s is writable", m.MountPath)
		}
	}
}
