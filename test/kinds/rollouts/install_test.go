package rollouts

import (
	"fmt"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// TestTheManifestsAreAdmitted: kubectl builds config/rollouts, and in its namespace, where the strictest standard for Pods is enforced, the Pods of
// the managers are created and come up. What else is installed, the cluster has from the same files.
func TestTheManifestsAreAdmitted(t *testing.T) {
	takePlace(t)
	e := enter(t, alone)
	root, err := cluster.Root()
	e.Must(err)
	folder := filepath.Join(root, "config", "rollouts")
	_, err = e.Kubectl(e.Ctx, "kustomize", folder)
	e.Must(err)
	for _, file := range []string{"namespace.yaml", "manager/manager.yaml"} {
		_, err = e.Kubectl(e.Ctx, "apply", "--server-side", "-f", filepath.Join(folder, file))
		e.Must(err)
	}
	name := client.ObjectKey{Namespace: "kruise-rollout", Name: "kruise-rollout-manager"}
	t.Cleanup(func() {
		managers := &appsv1.Deployment{}
		managers.Namespace, managers.Name = name.Namespace, name.Name
		if err := client.IgnoreNotFound(e.Delete(e.Afterwards(), managers)); err != nil {
			t.Error(err)
		}
	})
	e.Eventually("two managers are available", func() error {
		managers := &appsv1.Deployment{}
		if err := e.Get(e.Ctx, name, managers); err != nil {
			return err
		}
		if managers.Status.AvailableReplicas != 2 {
			return fmt.Errorf("%+v", managers.Status)
		}
		return nil
	})
}
