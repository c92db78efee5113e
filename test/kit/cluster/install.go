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
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Program is a manager that can run beside a cluster.
type Program struct {
	name string
	// account is that whose rights it has.
	account types.NamespacedName
	// manifests are what is installed before it, webhooks the configurations that come with it.
	manifests []string
	webhooks  string
	// healthFlag and metricsFlag are the flags for its addresses, args what else it is started with.
	healthFlag, metricsFlag string
	args                    []string
}

// KruiseManager is the manager of all kinds but Rollouts.
func KruiseManager() Program {
	return Program{
		name: "kruise-manager", account: types.NamespacedName{Namespace: "kruise-system", Name: "kruise-manager"},
		manifests: []string{
			"config/crd/bases/*.yaml", "config/rbac/*.yaml", "config/protection/*.yaml", "config/flowcontrol/*.yaml",
			"config/daemon/rights.yaml", "config/daemon/policy.yaml",
		},
		webhooks: "config/webhook/manifests.yaml", healthFlag: "--health-probe-addr", metricsFlag: "--metrics-addr",
		args: []string{"--enable-pprof=false"},
	}
}

// RolloutManager is the manager of Rollouts.
func RolloutManager() Program {
	return Program{
		name: "kruise-rollout", account: types.NamespacedName{Namespace: "kruise-rollout", Name: "kruise-rollout"},
		manifests: []string{"config/rollouts/crd/*.yaml", "config/rollouts/rbac/*.yaml", "config/rollouts/flowcontrol.yaml",
			"config/rollouts/policy*.yaml"},
		webhooks:   "config/rollouts/webhook/manifests.yaml",
		healthFlag: "--health-probe-bind-address", metricsFlag: "--metrics-bind-address",
	}
}

// Install makes the namespace of the manager of Kruise, and applies the CRDs and the privileges, for a manager that runs as a process
// beside the cluster. The webhook configurations come with the first manager: without one they would only refuse.
func (c *Cluster) Install(ctx context.Context) error { return c.InstallProgram(ctx, KruiseManager()) }

// InstallProgram does the same for any manager.
func (c *Cluster) InstallProgram(ctx context.Context, p Program) error {
	root, err := Root()
	if err != nil {
		return err
	}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.account.Namespace}} // for the Lease of the leader
	if err := c.Client.Create(ctx, system); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making namespace %s: %w", system.Name, err)
	}
	for _, pattern := range p.manifests {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 && !strings.HasSuffix(pattern, "policy*.yaml") {
			return errors.Join(err, fmt.Errorf("there are no manifests %s below %s", pattern, root))
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			if err := c.ApplyFile(ctx, file); err != nil {
				return err
			}
		}
	}
	return c.serves(ctx)
}

// serves waits until the API server serves the kinds of all CRDs. A manager that is started before ends, and nothing starts it again.
func (c *Cluster) serves(ctx context.Context) error {
	asked, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return err
	}
	var crds unstructured.UnstructuredList
	crds.SetAPIVersion("apiextensions.k8s.io/v1")
	crds.SetKind("CustomResourceDefinitionList")
	if err := c.Client.List(ctx, &crds); err != nil {
		return fmt.Errorf("listing CRDs: %w", err)
	}
	var missing string
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, served, err := asked.ServerGroupsAndResources()
		if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
			return false, err
		}
		there := map[string]bool{}
		for _, list := range served {
			for i := range list.APIResources {
				there[list.APIResources[i].Name+"."+list.GroupVersion] = true
			}
		}
		missing = ""
		for i := range crds.Items {
			for _, name := range versionsOf(&crds.Items[i]) {
				if !there[name] {
					missing = name
				}
			}
		}
		return missing == "", nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the API server serves the kinds of all CRDs; it does not serve %q: %w", missing, err)
	}
	return nil
}

// versionsOf returns what a CRD has served, as PLURAL.GROUP/VERSION.
func versionsOf(crd *unstructured.Unstructured) []string {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group") // the API server has judged it
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var out []string
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["served"] == true {
			out = append(out, fmt.Sprintf("%s.%s/%s", plural, group, version["name"]))
		}
	}
	return out
}

// installWebhooks makes the webhook configurations that are missing. Managers fill in their address and their certificate.
func (c *Cluster) installWebhooks(ctx context.Context, p Program) error {
	root, err := Root()
	if err != nil {
		return err
	}
	return eachObject(filepath.Join(root, p.webhooks), func(o *unstructured.Unstructured) error {
		if err := c.Client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		return nil
	})
}

// InstallPods installs all that a user's cluster gets, and the manager as Pods of the image that the sources give: for clusters with real
// nodes, which have their daemons beside them. It returns when the Pods are available.
func (c *Cluster) InstallPods(ctx context.Context) error {
	root, err := Root()
	if err != nil {
		return err
	}
	if err := c.loadImages(ctx, root); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "apply", "-k", filepath.Join(root, "config", "default")); err != nil {
		return err
	}
	_, err = c.Kubectl(ctx, "-n", "kruise-system", "rollout", "status", "--timeout=2m", "deployment/kruise-controller-manager")
	return err
}

// InstallChart does the same by the chart, as it is. What the daemons beside the nodes go by, which is there before anything is installed,
// becomes the chart's.
func (c *Cluster) InstallChart(ctx context.Context, values ...string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	if err := c.loadImages(ctx, root); err != nil {
		return err
	}
	args := []string{
		"install", "kruise", "charts/kruise", "--namespace", "kruise-system", "--create-namespace", "--take-ownership",
		"--wait", "--timeout", "2m",
	}
	for _, v := range values {
		args = append(args, "--set-string", v)
	}
	_, err = c.Helm(ctx, args...)
	return err
}

// loadImages makes the images of manager and daemon, and loads them into the cluster; one process at a time, for all write the same files.
func (c *Cluster) loadImages(ctx context.Context, root string) error {
	dist := filepath.Join(root, "dist")
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(dist, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("waiting for who makes the images: %w", err)
	}
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", root, "image")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("making the images: %w\n%s", err, out)
	}
	_, err = c.Local(ctx, "load-image", filepath.Join(dist, "kruise-manager.tar"), filepath.Join(dist, "kruise-daemon.tar"))
	return err
}

// ManagerKubeconfig writes a kubeconfig into a folder with which the manager acts under its own account, and so under the privileges that
// are shipped.
func (c *Cluster) ManagerKubeconfig(ctx context.Context, dir string) (string, error) {
	return c.accountKubeconfig(ctx, KruiseManager().account, nil, filepath.Join(dir, "kubeconfig"))
}

// DaemonKubeconfig writes a kubeconfig with which the daemon of a node acts under its own account, as one does whose Pod runs on that node.
func (c *Cluster) DaemonKubeconfig(ctx context.Context, node, path string) error {
	n := &corev1.Node{}
	if err := c.Client.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
		return fmt.Errorf("reading node %s: %w", node, err)
	}
	bound := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: n.UID}
	_, err := c.accountKubeconfig(ctx, types.NamespacedName{Namespace: "kruise-system", Name: "kruise-daemon"}, bound, path)
	return err
}

// accountKubeconfig writes a kubeconfig of a service account, whose token is bound to an object, or to none.
func (c *Cluster) accountKubeconfig(
	ctx context.Context, name types.NamespacedName, bound *authenticationv1.BoundObjectReference, path string,
) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name.Name, Namespace: name.Namespace}}
	lifetime := int64((24 * time.Hour).Seconds())
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime, BoundObjectRef: bound}}
	if err := c.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return "", fmt.Errorf("asking for a token of %s: %w", name, err)
	}
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		return "", err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	return path, clientcmd.WriteToFile(*config, path)
}

// ApplyFile applies every object of a YAML file, server-side.
func (c *Cluster) ApplyFile(ctx context.Context, file string) error {
	return c.ApplyFileIn(ctx, file, "")
}

// ApplyFileIn does the same, for objects of a namespace that the file does not name; empty for objects of the whole cluster.
func (c *Cluster) ApplyFileIn(ctx context.Context, file, namespace string) error {
	return eachObject(file, func(o *unstructured.Unstructured) error {
		if namespace != "" {
			o.SetNamespace(namespace)
		}
		if err := c.keepConversion(ctx, o); err != nil {
			return err
		}
		return c.apply(ctx, o)
	})
}

func (c *Cluster) apply(ctx context.Context, o *unstructured.Unstructured) error {
	apply := client.ApplyConfigurationFromUnstructured(o)
	if err := c.Client.Apply(ctx, apply, client.FieldOwner("kruise-install"), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// eachObject calls a function for every object of a YAML file.
func eachObject(file string, f func(*unstructured.Unstructured) error) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := eachIn(text, f); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return nil
}

// eachIn calls a function for every object of a text in YAML.
func eachIn(text []byte, f func(*unstructured.Unstructured) error) error {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := documents.Decode(&o.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if len(o.Object) == 0 {
			continue
		}
		if err := f(o); err != nil {
			return err
		}
	}
}

// keepConversion leaves it to the manager how the conversion webhook of an installed CRD is reached: as a process by URL, while the
// manifest names a Service, and the API server takes only one of both.
func (c *Cluster) keepConversion(ctx context.Context, o *unstructured.Unstructured) error {
	if o.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	live := o.DeepCopy()
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(o), live)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading CRD %s: %w", o.GetName(), err)
	}
	conversion, _, err := unstructured.NestedMap(live.Object, "spec", "conversion")
	if err != nil {
		return fmt.Errorf("reading CRD %s: %w", o.GetName(), err)
	}
	return unstructured.SetNestedMap(o.Object, conversion, "spec", "conversion")
}
