package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// StartHub starts a manager that may have workloads in other clusters, in those that are registered.
func (c *Cluster) StartHub(ctx context.Context, o ManagerOptions) (*Manager, error) {
	o.Args = append(slices.Clone(o.Args), "--feature-gates=UnitedDeploymentMultiCluster=true")
	m, err := c.StartManager(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, file := range []string{"hub.yaml", "deployers.yaml"} {
		if err := c.applyMulticluster(ctx, file); err != nil {
			m.Kill()
			return nil, err
		}
	}
	return m, nil
}

// Register gives the hub, which c is, access to a member, by an account there with the rights that are shipped and no others: the Secret of
// this name in namespace default has the kubeconfig, and is replaced if it is there already.
func (c *Cluster) Register(ctx context.Context, member *Cluster, name string) error {
	if err := member.applyMulticluster(ctx, "member.yaml"); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-multicluster", Name: "kruise-hub"}}
	token := &authenticationv1.TokenRequest{}
	if err := member.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("asking %s for a token: %w", name, err)
	}
	config, err := clientcmd.LoadFromFile(member.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
	}
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("writing a kubeconfig for %s: %w", name, err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{keys.KubeconfigSecret: "true"}},
		Data:       map[string][]byte{keys.KubeconfigKey: kubeconfig},
	}
	if err = c.Client.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		err = c.Client.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("writing Secret default/%s: %w", name, err)
	}
	return nil
}

func (c *Cluster) applyMulticluster(ctx context.Context, file string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	return c.ApplyFile(ctx, filepath.Join(root, "config", "multicluster", file))
}
