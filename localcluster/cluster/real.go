package cluster

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/util/taints"

	"github.com/seed-69ecc383/kruise/localcluster/images"
	"github.com/seed-69ecc383/kruise/localcluster/pki"
	"github.com/seed-69ecc383/kruise/localcluster/process"
	"github.com/seed-69ecc383/kruise/localcluster/realnode"
)

// preflight asks whether this machine can run what is wanted, before anything is started.
func (c *Cluster) preflight() error {
	if c.state.Config.RealNodes == 0 {
		return nil
	}
	if err := realnode.Preflight(); err != nil {
		return err
	}
	return images.CheckBusybox(images.DefaultBusybox)
}

// ensureRealNodes makes every real node run, and waits until all are Ready.
func (c *Cluster) ensureRealNodes(ctx context.Context, client kubernetes.Interface, watched *watch, progress Progress) error {
	count := c.state.Config.RealNodes
	if count == 0 {
		return nil
	}
	site, err := realnode.Found(c.path("nodes"))
	if err != nil {
		return err
	}
	if err := site.EnsureNetwork(apiServiceIP, c.state.Ports.APIServer); err != nil {
		return err
	}
	var nodes []realnode.Node
	for i := range count {
		nodes = append(nodes, site.Node(i))
		if err := c.ensureRealNode(ctx, nodes[i], watched, progress); err != nil {
			return err
		}
	}
	progress(fmt.Sprintf("Waiting for %d real nodes", count))
	if err := watched.until(ctx, func(ctx context.Context) (bool, string) { return realNodesReady(ctx, client, nodes) }); err != nil {
		return err
	}
	return c.ensureDaemons(ctx, client, nodes, watched, progress)
}

func (c *Cluster) ensureRealNode(ctx context.Context, node realnode.Node, watched *watch, progress Progress) error {
	credentials, err := c.nodeCredentials(node)
	if err != nil {
		return err
	}
	if err := node.Prepare(credentials); err != nil {
		return err
	}
	if err := images.WriteHosts(node.HostsFolder(), c.RegistryAddress()); err != nil {
		return err
	}
	for _, program := range []string{realnode.Containerd, realnode.Kubelet} {
		spec := c.forOwner(node.Spec(program, credentials))
		if program == realnode.Kubelet {
			if spec, err = c.byProgram(ctx, spec); err != nil {
				return err
			}
		}
		if err := c.ensureProcess(spec, watched, progress); err != nil {
			return err
		}
		if program == realnode.Kubelet {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, startTimeout)
		err := node.AwaitRuntime(ctx, func() bool {
			_, alive := c.Home().Alive(node.Processes()[0])
			return alive
		})
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// nodeCredentials are the keys of a real node, as a client and as a server.
func (c *Cluster) nodeCredentials(node realnode.Node) (realnode.Credentials, error) {
	kubeconfig := c.kubeconfigOf(node.Name)
	if err := c.EnsureKubeconfig(kubeconfig, pki.Request{
		Name: node.Name, CommonName: "system:node:" + node.Name, Organizations: []string{"system:nodes"},
	}); err != nil {
		return realnode.Credentials{}, err
	}
	cert, key, err := c.IssueCertificate(pki.Request{
		Name: node.Name + "-serving", CommonName: "system:node:" + node.Name, Organizations: []string{"system:nodes"},
		Hosts: []string{node.Name, node.Address().String()},
	})
	return realnode.Credentials{Kubeconfig: kubeconfig, Cert: cert, Key: key, ClientCA: c.AuthorityCert()}, err
}

// realNodesReady wants every node Ready, open to Pods and reachable for exec: of one whose kubelet has just been restarted, the API still
// says what was true before.
func realNodesReady(ctx context.Context, client kubernetes.Interface, nodes []realnode.Node) (bool, string) {
	for _, real := range nodes {
		node, err := client.CoreV1().Nodes().Get(ctx, real.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return false, "node " + real.Name + " has not registered yet"
		case err != nil:
			return false, "reading node " + real.Name + ": " + err.Error()
		case !NodeReady(node) || taints.TaintKeyExists(node.Spec.Taints, corev1.TaintNodeNotReady):
			return false, "node " + real.Name + " is not Ready: " + readyMessage(node)
		}
		connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", real.Endpoint())
		if err != nil {
			return false, "the kubelet of node " + real.Name + " does not answer: " + err.Error()
		}
		connection.Close()
	}
	return true, ""
}

func readyMessage(node *corev1.Node) string {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Message
		}
	}
	return "it says nothing"
}

func (c *Cluster) removeRealNodes(_ context.Context, progress Progress) error {
	names, err := c.Home().Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, realnode.Kubelet+"@") {
			progress("Removing real nodes")
			break
		}
	}
	return realnode.Remove(c.path("nodes"), c.Home())
}

// forOwner ties a process to the owner of the cluster, if it has one.
func (c *Cluster) forOwner(spec process.Spec) process.Spec {
	if owner := c.state.Config.Owner; owner > 0 {
		spec.Env = append(spec.Env, fmt.Sprintf("%s=%d", process.OwnerEnv, owner))
	}
	return spec
}
