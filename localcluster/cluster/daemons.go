package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/seed-69ecc383/kruise/localcluster/realnode"
)

// The account of Kruise's daemons, which is all that is made of Kruise here: what the account may do is installed with the rest.
const daemonNamespace, daemonAccount = "kruise-system", "kruise-daemon"

// daemonTokenLifetime is how long a daemon may be left alone: `up` renews its token.
const daemonTokenLifetime = 365 * 24 * time.Hour

func daemonObjects() []object {
	return []object{
		{"/api/v1/namespaces/" + daemonNamespace, "{apiVersion: v1, kind: Namespace, metadata: {name: " + daemonNamespace + "}}"},
		{
			"/api/v1/namespaces/" + daemonNamespace + "/serviceaccounts/" + daemonAccount,
			"{apiVersion: v1, kind: ServiceAccount, metadata: {name: " + daemonAccount + ", namespace: " + daemonNamespace + "}}",
		},
	}
}

// ensureDaemons makes Kruise's daemon run for every real node, under the account that it has in every cluster and with a token that says
// which node it was given to, as a Pod's on that node does. A daemon without rights yet, or without the kinds that it watches, waits for
// them.
func (c *Cluster) ensureDaemons(ctx context.Context, client kubernetes.Interface, nodes []realnode.Node, watched *watch,
	progress Progress) error {
	program := c.state.Config.Daemon
	if program == "" {
		return c.stopDaemons(nodes)
	}
	if err := applyObjects(ctx, client, daemonObjects()); err != nil {
		return err
	}
	for _, node := range nodes {
		kubeconfig, err := c.daemonKubeconfig(ctx, client, node.Name)
		if err != nil {
			return err
		}
		if err := c.ensureProcess(c.forOwner(node.DaemonSpec(program, kubeconfig)), watched, progress); err != nil {
			return err
		}
	}
	return nil
}

// stopDaemons ends those that are not wanted any more.
func (c *Cluster) stopDaemons(nodes []realnode.Node) error {
	var failed []error
	for _, node := range nodes {
		name := node.DaemonSpec("", "").Name
		failed = append(failed, c.Home().Stop(name), c.Home().Forget(name))
	}
	return errors.Join(failed...)
}

// daemonKubeconfig makes the kubeconfig of a node's daemon, and gives it a new token.
func (c *Cluster) daemonKubeconfig(ctx context.Context, client kubernetes.Interface, node string) (string, error) {
	n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading node %s: %w", node, err)
	}
	lifetime := int64(daemonTokenLifetime.Seconds())
	token, err := client.CoreV1().ServiceAccounts(daemonNamespace).CreateToken(ctx, daemonAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &lifetime,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: n.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for the token of node %s's daemon: %w", node, err)
	}
	name := realnode.Daemon + "@" + node
	tokenFile := c.path("config", name+".token")
	if err := writeFile(tokenFile, []byte(token.Status.Token)); err != nil {
		return "", err
	}
	authority, err := os.ReadFile(c.AuthorityCert())
	if err != nil {
		return "", fmt.Errorf("making kubeconfig of %s: %w", name, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["kruise-local"] = &clientcmdapi.Cluster{Server: c.Server(), CertificateAuthorityData: authority}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: tokenFile} // read anew by who uses it
	config.Contexts["kruise-local"] = &clientcmdapi.Context{Cluster: "kruise-local", AuthInfo: name}
	config.CurrentContext = "kruise-local"
	content, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("making kubeconfig of %s: %w", name, err)
	}
	path := c.kubeconfigOf(name)
	return path, writeFile(path, content)
}
