package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1alpha1 "github.com/seed-69ecc383/kruise/api/policy/v1alpha1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rolloutsv1alpha1 "github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// Options say what kind of cluster is wanted.
type Options struct {
	// Dir holds all state of the cluster; two clusters need two folders. Empty for kruise-local's own default.
	Dir string
	// Bare leaves out the controller manager, the scheduler and all nodes.
	Bare bool
	// Nodes is the number of simulated nodes, RealNodes the number of nodes with a kubelet and containerd.
	Nodes, RealNodes int
	// Args are further arguments of kruise-local up.
	Args []string
	// Log receives what kruise-local says; nil to keep it for errors.
	Log io.Writer
	// TestOf returns the name of the test that a namespace belongs to, for who records what tests do; empty for those of none.
	TestOf func(namespace string) string
}

// Cluster is a running control plane.
type Cluster struct {
	// Kubeconfig is the path of an administrator's kubeconfig.
	Kubeconfig string
	// Config is the same as a client configuration, without client-side rate limits.
	Config *rest.Config
	// Client reads and writes without a cache, all kinds of Kubernetes and of Kruise.
	Client client.Client

	options Options
}

// Scheme returns the kinds of Kubernetes, of CRDs, and of Kruise.
func Scheme() (*k8sruntime.Scheme, error) {
	s := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{
		scheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme,
		policyv1alpha1.AddToScheme, policyv1beta1.AddToScheme, rolloutsv1alpha1.AddToScheme, rolloutsv1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Up starts a cluster, or finds it running. The caller ends it with Down.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	args := []string{"up"}
	if o.Bare {
		args = append(args, "--bare")
	} else {
		args = append(args, "--nodes", strconv.Itoa(o.Nodes), "--real-nodes", strconv.Itoa(o.RealNodes))
	}
	if _, err := kruiseLocal(ctx, o, append(args, o.Args...)...); err != nil {
		return nil, err
	}
	out, err := kruiseLocal(ctx, o, "kubeconfig")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Kubeconfig: strings.TrimSpace(out), options: o}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return nil, fmt.Errorf("reading %s: %w", c.Kubeconfig, err)
	}
	c.Config.QPS = -1
	c.Config.WarningHandler = rest.NoWarnings{} // tests look at those that they are about
	if o.Log != nil {
		c.Config.WarningHandler = rest.NewWarningWriter(o.Log, rest.WarningWriterOptions{Deduplicate: true})
	}
	s, err := Scheme()
	if err != nil {
		return nil, err
	}
	if c.Client, err = client.New(c.Config, client.Options{Scheme: s}); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return c, nil
}

// Down ends the cluster and removes its state.
func (c *Cluster) Down(ctx context.Context) error {
	err := c.recordUses()
	_, downErr := kruiseLocal(ctx, c.options, "down")
	return errors.Join(err, downErr)
}

// Local runs a kruise-local verb on the cluster and returns what it printed.
func (c *Cluster) Local(ctx context.Context, args ...string) (string, error) {
	return kruiseLocal(ctx, c.options, args...)
}

// Kubectl runs kubectl as the cluster's administrator and returns what it printed.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return kruiseLocal(ctx, c.options, append([]string{"kubectl"}, args...)...)
}

func kruiseLocal(ctx context.Context, o Options, args ...string) (string, error) {
	binary, err := Binary("kruise-local")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, binary)
	if o.Dir != "" { // before the verb: what follows kubectl is kubectl's
		cmd.Args = append(cmd.Args, "--dir", o.Dir)
	}
	cmd.Args = append(cmd.Args, args...)
	var out, progress bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &progress
	if o.Log != nil && args[0] != "kubeconfig" {
		cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, o.Log), io.MultiWriter(&progress, o.Log)
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("running kruise-local %s: %w\n%s%s", strings.Join(args, " "), err, progress.String(), out.String())
	}
	return out.String(), nil
}

// Binary returns the path of one of the project's programs, as make build leaves it in bin.
func Binary(name string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not built: run make build (%w)", name, err)
	}
	return path, nil
}

// Root returns the folder of the project's sources.
func Root() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if ok && filepath.IsAbs(file) {
		return filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(file)))), nil
	}
	// A build with -trimpath does not know where its sources are; tests and go run start inside them.
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return "", errors.Join(errors.New("the project's sources are not around the working directory"), err)
}
