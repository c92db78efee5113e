package sidecar

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

const (
	bare   = `{"containers":[{"name":"container1","image":"test-image","resources":{},"upgradeStrategy":{},"shareVolumePolicy":{}}]}`
	centos = `{"containers":[{"name":"sidecar1","image":"centos:6.7","command":["sleep","999d"],"resources":{},"volumeMounts":[{"name":"log-volume","mountPath":"/var/log"}],"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","podInjectPolicy":"BeforeAppContainer","upgradeStrategy":{"upgradeType":"ColdUpgrade"},"shareVolumePolicy":{"type":"disabled"}}],"volumes":[{"name":"log-volume","emptyDir":{}}]}`
	log    = `{"containers":[{"name":"log","image":"busybox:1.34","command":["sleep","999d"],"resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","podInjectPolicy":"AfterAppContainer","upgradeStrategy":{"upgradeType":"ColdUpgrade"},"shareVolumePolicy":{"type":"disabled"}}]}`
)

func specOf(t *testing.T, text, image string) *v1beta1.SidecarSetSpec {
	t.Helper()
	var spec v1beta1.SidecarSetSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	if image != "" {
		spec.Containers[0].Image = image
	}
	return &spec
}

// TestHashesAreThoseOfStoredPods compares with hashes that the original has written.
func TestHashesAreThoseOfStoredPods(t *testing.T) {
	const withoutCentos, withoutLog = "wcv47954b7xv5w4fbw682bbf78cw2449448vbf4fvvwv77947bc7fcv7fw89f98x", "6842f858x77v9c4f929ccvcvc9zbc94d5d5fx6425cfx25wv5dd77xc97bxx9w95"
	for name, tc := range map[string]struct {
		text, image        string
		want, withoutImage string
	}{
		"without defaults":     {bare, "", "w26c4x8fz245642fdv499b464248f974xddx4x55z5dw55bc6x66464fxz77dc78", ""},
		"with a volume":        {centos, "", "4zbdc2xzc8w7c4x2c6984266bc9d7zf87x946v7xdfv988f6c6fc9b7dz47w8zd5", withoutCentos},
		"with another image":   {centos, "centos:7", "79fcf4b544x58xx265b6z4xf6z6b2wb22447cb9vzzz82z879z8v22w2ddb7fzdz", withoutCentos},
		"recorded, first":      {log, "", "cw5v9vv86fb4wvzd89f47z55d24fzf45xbdcz5cc8xvfff47fb9db7254c8ff2d8", withoutLog},
		"recorded, as updated": {log, "busybox:1.35", "4fb4x445d2w4cz992vxbwc59bv5dzz5zz9vvb6ccfcfcxwf4ww4xvx58w2v4w9cc", withoutLog},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := HashesOf(specOf(t, tc.text, tc.image))
			if err != nil {
				t.Fatal(err)
			}
			if got.Full != tc.want {
				t.Errorf("hash %s, want %s", got.Full, tc.want)
			}
			if tc.withoutImage != "" && got.WithoutImage != tc.withoutImage {
				t.Errorf("hash without image %s, want %s", got.WithoutImage, tc.withoutImage)
			}
		})
	}
}

func TestOnlyWhatStaysInThePodIsHashed(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	base := specOf(t, log, "")
	hash := func(change func(*v1beta1.SidecarSetSpec)) Hashes {
		spec := base.DeepCopy()
		change(spec)
		got, err := HashesOf(spec)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	same := hash(func(*v1beta1.SidecarSetSpec) {})
	for name, tc := range map[string]struct {
		change      func(*v1beta1.SidecarSetSpec)
		full, other bool // whether each hash changes
	}{
		"an image":          {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Image = "x" }, true, false},
		"the idle image":    {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].UpgradeStrategy.HotUpgradeEmptyImage = "x" }, true, true},
		"a variable":        {func(s *v1beta1.SidecarSetSpec) { s.Containers[0].Env = []corev1.EnvVar{{Name: "A"}} }, true, true},
		"a volume":          {func(s *v1beta1.SidecarSetSpec) { s.Volumes = []corev1.Volume{{Name: "v"}} }, false, false},
		"an init container": {func(s *v1beta1.SidecarSetSpec) { s.InitContainers = []v1beta1.SidecarContainer{{}} }, false, false},
		"one that stays running": {func(s *v1beta1.SidecarSetSpec) {
			s.InitContainers = []v1beta1.SidecarContainer{{Container: corev1.Container{RestartPolicy: &always}}}
		}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := hash(tc.change)
			if (got.Full != same.Full) != tc.full || (got.WithoutImage != same.WithoutImage) != tc.other {
				t.Errorf("changed: %t and without images %t, want %t and %t", got.Full != same.Full, got.WithoutImage != same.WithoutImage, tc.full, tc.other)
			}
		})
	}
}

// TestRevisionsHaveTheNamesOfStoredOnes compares with names that the original has given.
func TestRevisionsHaveTheNamesOfStoredOnes(t *testing.T) {
	for name, tc := range map[string]struct{ set, text, image, want string }{
		"with a volume":        {"test-sidecarset", centos, "", "test-sidecarset-cf4bf7796"},
		"with another image":   {"test-sidecarset", centos, "centos:7", "test-sidecarset-6c8ffcbdcb"},
		"recorded, first":      {"log-sidecar", log, "", "log-sidecar-54c65669c6"},
		"recorded, as updated": {"log-sidecar", log, "busybox:1.35", "log-sidecar-9b4977fbf"},
	} {
		t.Run(name, func(t *testing.T) {
			set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: tc.set}, Spec: *specOf(t, tc.text, tc.image)}
			got, err := RevisionName(set)
			if err != nil || got != tc.want {
				t.Errorf("got %s, want %s (%v)", got, tc.want, err)
			}
		})
	}
}

func TestARevisionGivesBackWhatItHolds(t *testing.T) {
	before := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "log"}, Spec: *specOf(t, centos, "")}
	before.Spec.CustomVersion = "v1"
	rev, err := NewRevision(before, "kruise-system", 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"kruise.io/sidecarset-name": "log", "apps.kruise.io/sidecarset-custom-version": "v1", "controller.kubernetes.io/hash": "cf4bf7796"}, rev.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	now := before.DeepCopy()
	now.Spec.Containers[0].Image = "centos:7"
	now.Spec.Volumes = nil
	got, err := AtRevision(now, rev)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Spec, got.Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Annotations["kruise.io/sidecarset-hash"] != "4zbdc2xzc8w7c4x2c6984266bc9d7zf87x946v7xdfv988f6c6fc9b7dz47w8zd5" {
		t.Errorf("annotations %v", got.Annotations)
	}
}
