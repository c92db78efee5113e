package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"k8s.io/kubernetes/pkg/util/taints"

	"github.com/seed-69ecc383/kruise/localcluster/simnode"
)

// Client is an administrator's client of the cluster's API.
func (c *Cluster) Client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	config.QPS = -1
	config.UserAgent = "kruise-local"
	config.Timeout = 10 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client, nil
}

// apiReady asks the API server itself.
func apiReady(ctx context.Context, client kubernetes.Interface) (bool, string) {
	if err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return false, "kube-apiserver is not ready: " + err.Error()
	}
	return true, ""
}

// serviceAccountReady is the sign that Pods can be created: admission gives each one the service account of its namespace.
func serviceAccountReady(ctx context.Context, client kubernetes.Interface) (bool, string) {
	if _, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return false, "the default service account is missing: " + err.Error()
	}
	return true, ""
}

// nodesReady wants every simulated node Ready and open to Pods, but those that were stopped on purpose.
func nodesReady(ctx context.Context, client kubernetes.Interface) (bool, string) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: simnode.Selector})
	if err != nil {
		return false, "listing nodes: " + err.Error()
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if simnode.Stopped(node) {
			continue
		}
		// The taint goes a little later than the node becomes Ready; until then all Pods would crowd on the other nodes.
		if !NodeReady(node) || taints.TaintKeyExists(node.Spec.Taints, corev1.TaintNodeNotReady) {
			return false, "node " + node.Name + " is not Ready"
		}
	}
	return true, ""
}

// NodeReady tells whether a node says that it is.
func NodeReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// probes looks at the health ports of components.
type probes struct{ client *http.Client }

func (c *Cluster) probes() (probes, error) {
	authority, err := os.ReadFile(c.pki().Cert(clusterCA))
	if err != nil {
		return probes{}, fmt.Errorf("reading the cluster's authority: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return probes{client: &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		},
	}}, nil
}

func (p probes) healthy(name string, port int) readiness {
	return func(ctx context.Context) (bool, string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/healthz", port), http.NoBody)
		if err != nil {
			return false, err.Error()
		}
		response, err := p.client.Do(request)
		if err != nil {
			return false, name + " does not answer: " + err.Error()
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(io.LimitReader(response.Body, 512)) // what could be read is all there is to say
			return false, fmt.Sprintf("%s is unhealthy: %s", name, body)
		}
		return true, ""
	}
}
