// Package install takes the way of a user, word for word: builds the image, lets a real node have it, applies the manifests, and rolls out.
package install

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// user is somebody with a cluster of one real node.
type user struct{ *scene.Stage }

// kubectl returns what kubectl prints.
func (u *user) kubectl(args ...string) string {
	u.Helper()
	out, err := u.Kubectl(u.Ctx, args...)
	if err != nil {
		u.fail(err)
	}
	return strings.TrimSpace(out)
}

// fail ends the test with what the cluster has to say.
func (u *user) fail(err error) {
	u.Helper()
	for _, ask := range [][]string{
		{"get", "pods,clone", "-A", "-o", "wide"},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"-n", "kruise-system", "logs", "deployment/kruise-controller-manager", "--tail=20"},
	} {
		out, askErr := u.Kubectl(u.Afterwards(), ask...)
		u.Logf("kubectl %s: %v\n%s", strings.Join(ask, " "), askErr, out)
	}
	u.Fatal(err)
}

func TestTheManifestsInstallAManagerThatRollsOut(t *testing.T) {
	u := &user{scene.NewStage(t, cluster.Options{RealNodes: 1})}
	root, err := cluster.Root()
	u.Must(err)
	if err := u.InstallPods(u.Ctx); err != nil {
		u.fail(err)
	}
	if got := u.kubectl("-n", "kruise-system", "get", "deployment", "kruise-controller-manager", "-o",
		"jsonpath={.status.availableReplicas}"); got != "2" {
		t.Errorf("%s replicas are available, want 2", got)
	}

	u.kubectl("apply", "-f", filepath.Join(root, "examples", "cloneset-surge-partition.yaml"))
	u.kubectl("wait", "clone/demo", "--for=jsonpath={.status.updatedAvailableReplicas}=5", "--timeout=2m")
	u.kubectl("patch", "clone", "demo", "--type=json", "-p",
		`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:mainline"}]`)
	u.kubectl("wait", "clone/demo", "--for=jsonpath={.status.updatedAvailableReplicas}=2", "--timeout=2m")
	u.kubectl("wait", "clone/demo", "--for=jsonpath={.status.replicas}=5", "--timeout=2m")
	images := u.kubectl("get", "pods", "-l", "app=demo", "--field-selector=status.phase=Running", "-o",
		"jsonpath={.items[*].spec.containers[0].image}")
	if got := strings.Count(images, "nginx:mainline"); got != 2 {
		t.Errorf("%d Pods have the new image, want the 2 that partition 3 of 5 allows: %s", got, images)
	}

	// The webhooks answer as Services of the cluster, from the same image.
	_, err = u.Kubectl(u.Ctx, "patch", "clone", "demo", "--type=merge", "-p", `{"spec": {"selector": {"matchLabels": {"app": "other"}}}}`)
	if err == nil || !strings.Contains(err.Error(), "spec.selector: Forbidden") {
		t.Errorf("changing the selector ended with %v, want it forbidden by the webhook", err)
	}

	u.kubectl("delete", "clone", "demo", "--timeout=1m")
	// A namespace takes what is in it with it, at times before kubectl asks for that itself.
	u.kubectl("delete", "-k", filepath.Join(root, "config", "default"), "--ignore-not-found", "--timeout=2m")
	if got := u.kubectl("get", "namespaces,crds,mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o",
		"name"); strings.Contains(got, "kruise") {
		t.Errorf("these are left when the manifests are deleted:\n%s", got)
	}
}
