package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"golang.org/x/sync/errgroup"

	"github.com/seed-69ecc383/kruise/localcluster/provision"
	"github.com/seed-69ecc383/kruise/localcluster/simnode"
)

// object is something the cluster needs, and where the API keeps it.
type object struct{ path, yaml string }

// objects are what nodes and claims rest on. Applying them again changes nothing.
func objects() []object {
	return []object{
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles/kruise-local:simulator", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "kruise-local:simulator"}
rules:
- {apiGroups: [""], resources: [nodes, pods, persistentvolumes, persistentvolumeclaims, configmaps, secrets], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [nodes/status, pods/status, persistentvolumeclaims/status], verbs: [patch, update]}
- {apiGroups: [""], resources: [pods], verbs: [delete]}
- {apiGroups: [""], resources: [persistentvolumes], verbs: [create, update, patch, delete]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update, patch]}
- {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch]}
- {apiGroups: [storage.k8s.io], resources: [storageclasses], verbs: [get, list, watch]}
- {apiGroups: [apps.kruise.io], resources: [nodeimages], verbs: [get, list, watch]}
- {apiGroups: [apps.kruise.io], resources: [nodeimages/status], verbs: [update]}
`},
		{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kruise-local:simulator", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "kruise-local:simulator"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "kruise-local:simulator"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "` + simulatorUser + `"}]
`},
		// The API server must rank the simulated kubelets as it ranks real ones, or a busy controller would starve them.
		{"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/kruise-local-simulator", `
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: kruise-local-simulator}
spec:
  matchingPrecedence: 390
  priorityLevelConfiguration: {name: node-high}
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects: [{kind: User, user: {name: "` + simulatorUser + `"}}]
    resourceRules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true}]
`},
		{"/apis/storage.k8s.io/v1/storageclasses/standard", `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: ` + provision.Name + `
reclaimPolicy: Delete
volumeBindingMode: WaitForFirstConsumer
allowVolumeExpansion: true
`},
	}
}

func applyObjects(ctx context.Context, client kubernetes.Interface, objects []object) error {
	for _, object := range objects {
		body, err := yaml.YAMLToJSON([]byte(object.yaml))
		if err != nil {
			return fmt.Errorf("reading object %s: %w", object.path, err)
		}
		err = client.Discovery().RESTClient().Patch(types.ApplyPatchType).AbsPath(object.path).
			Param("fieldManager", "kruise-local").Param("force", "true").Body(body).Do(ctx).Error()
		if err != nil {
			return fmt.Errorf("applying %s: %w", object.path, err)
		}
	}
	return nil
}

// createSimulatedNodes makes sure that there are count of them. The simulator takes on whatever node bears its label.
func createSimulatedNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range count {
		group.Go(func() error {
			node := simnode.NewNode(i + 1)
			_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("creating node %s: %w", node.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
