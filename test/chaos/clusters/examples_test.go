package clusters

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// examples: 1, 3 and 2 Pods in three clusters, of the example for clusters, and of that for zones with clusters in their places.
func (u *united) examples() {
	zones := u.example("uniteddeployment.yaml", "zones")
	topology := zones.Object["spec"].(map[string]any)["topology"].(map[string]any)
	topology["clusterRegistry"] = map[string]any{"clusterType": map[string]any{"apiVersion": "v1", "kind": "Secret"}}
	subsets := topology["subsets"].([]any)
	for i, member := range []string{"member-1", "member-2"} {
		subsets[i+1].(map[string]any)["targetCluster"] = map[string]any{"name": member}
	}
	for i, c := range u.all() {
		u.label(c, "node", fmt.Sprintf("zone-%c", 'a'+i))
	}
	names := []string{"zones", "clusters"}
	for _, o := range []*unstructured.Unstructured{zones, u.example("clusters-uniteddeployment.yaml", "clusters")} {
		u.namespace(o.GetName(), "member-1", "member-2")
		u.Must(u.hub.Client.Create(u.Ctx, o))
	}
	for _, name := range names {
		u.Eventually(fmt.Sprintf("%s has 1, 3 and 2 ready Pods", name), func() error {
			if got := u.readyPods(name); got != "1 3 2" {
				return fmt.Errorf("it has %s", got)
			}
			return nil
		})
		u.isReady(name, 6)
		u.delete(name)
	}
	for _, name := range names {
		u.isGone(name, "member-1", "member-2")
		u.Eventually(name+" has no Pods", func() error {
			if got := u.readyPods(name); got != "0 0 0" {
				return fmt.Errorf("it has %s", got)
			}
			return nil
		})
	}
}

// all returns the hub and its two members.
func (u *united) all() []*cluster.Cluster {
	return append([]*cluster.Cluster{u.hub}, u.of([]string{"member-1", "member-2"})...)
}

// example reads an example, for a namespace of a name and under that name.
func (u *united) example(file, name string) *unstructured.Unstructured {
	u.Helper()
	o := &unstructured.Unstructured{}
	u.Must(yaml.UnmarshalStrict([]byte(u.Examples(file)[file]), &o.Object))
	o.SetNamespace(name)
	o.SetName(name)
	return o
}

// namespace makes a namespace in the hub and in members.
func (u *united) namespace(name string, members ...string) {
	u.Helper()
	for _, c := range append([]*cluster.Cluster{u.hub}, u.of(members)...) {
		err := c.Client.Create(u.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if !apierrors.IsAlreadyExists(err) {
			u.Must(err)
		}
	}
}

// label gives a label to all nodes of a cluster.
func (u *united) label(c *cluster.Cluster, key, value string) {
	u.Helper()
	var nodes corev1.NodeList
	u.Must(c.Client.List(u.Ctx, &nodes))
	for i := range nodes.Items {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
		u.Must(c.Client.Patch(u.Ctx, &nodes.Items[i], client.RawPatch("application/merge-patch+json", []byte(patch))))
	}
}

// readyPods counts the ready Pods of a namespace in the hub and in its members.
func (u *united) readyPods(namespace string) string {
	u.Helper()
	var counts []string
	for _, c := range u.all() {
		var pods corev1.PodList
		u.Must(c.Client.List(u.Ctx, &pods, client.InNamespace(namespace)))
		ready := 0
		for i := range pods.Items {
			if scene.IsReady(&pods.Items[i]) {
				ready++
			}
		}
		counts = append(counts, fmt.Sprint(ready))
	}
	return strings.Join(counts, " ")
}

// inventory is the CRD of ClusterProfiles as far as it matters here.
const inventory = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterprofiles.multicluster.x-k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: multicluster.x-k8s.io
  scope: Namespaced
  names: {kind: ClusterProfile, plural: clusterprofiles}
  versions:
  - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`

// documented runs the commands of docs/uniteddeployment.md as a user does, and has workloads in the clusters that they make known.
func (u *united) documented() {
	secret, profile, look := u.commands()
	u.namespace("documented", "member-2")
	crd := &unstructured.Unstructured{}
	u.Must(yaml.UnmarshalStrict([]byte(inventory), &crd.Object))
	u.Must(u.hub.Client.Create(u.Ctx, crd))
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterManager": map[string]any{"name": "test"}}}}
	made.SetAPIVersion("multicluster.x-k8s.io/v1alpha1")
	made.SetKind("ClusterProfile")
	made.SetNamespace("default")
	made.SetName("documented")
	u.Eventually("there is a ClusterProfile", func() error { return u.hub.Client.Create(u.Ctx, made) })

	set := u.example("clusters-uniteddeployment.yaml", "documented")
	topology := set.Object["spec"].(map[string]any)["topology"].(map[string]any)
	topology["subsets"] = []any{map[string]any{"name": "only", "targetCluster": map[string]any{"name": "documented"}}}
	run := u.shell()
	for _, way := range []struct {
		kind, commands string
		registry       map[string]any
	}{
		{"Secret", secret, topology["clusterRegistry"].(map[string]any)},
		{"ClusterProfile", profile, map[string]any{}},
	} {
		run(way.commands)
		topology["clusterRegistry"] = way.registry
		u.Must(u.hub.Client.Create(u.Ctx, set.DeepCopy()))
		u.Eventually(way.kind+" documented leads to member-2", func() error {
			if got := u.readyPods("documented"); got != "0 0 6" {
				return fmt.Errorf("there are %s Pods", got)
			}
			return nil
		})
		u.Within(time.Minute, "the commands say so", func() error {
			if out := run(look); !strings.Contains(out, "only default/documented Connected") {
				return fmt.Errorf("they say %s", out)
			}
			return nil
		})
		u.delete("documented")
		u.isGone("documented", "member-2")
	}
}

// commands returns those of the page by which a user makes a cluster known, by a Secret and by a ClusterProfile, and looks at the outcome.
func (u *united) commands() (secret, profile, look string) {
	u.Helper()
	root, err := cluster.Root()
	u.Must(err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "uniteddeployment.md"))
	u.Must(err)
	_, section, _ := strings.Cut(string(page), "\n## Subsets in other clusters\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) < 4 {
		u.Fatalf("the page has %d blocks of commands, want 4", len(blocks))
	}
	replace := strings.NewReplacer("member=member-1", "member=documented", "ud web", "-n documented ud documented")
	return replace.Replace(blocks[0][1] + blocks[1][1]), replace.Replace(blocks[2][1]), replace.Replace(blocks[3][1])
}

// shell returns what runs commands with the sources' manifests and a kubeconfig for the hub, and for member-2 as the context documented.
func (u *united) shell() func(commands string) string {
	u.Helper()
	root, err := cluster.Root()
	u.Must(err)
	local, err := cluster.Binary("kruise-local")
	u.Must(err)
	dir, err := os.MkdirTemp(u.dir, "shell-")
	u.Must(err)
	u.Must(os.Symlink(filepath.Join(root, "config"), filepath.Join(dir, "config")))
	all := clientcmdapi.NewConfig()
	for name, c := range map[string]*cluster.Cluster{"hub": u.hub, "documented": u.members["member-2"]} {
		one, err := clientcmd.LoadFromFile(c.Kubeconfig)
		u.Must(err)
		in := one.Contexts[one.CurrentContext]
		all.Clusters[name], all.AuthInfos[name] = one.Clusters[in.Cluster], one.AuthInfos[in.AuthInfo]
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	all.CurrentContext = "hub"
	kubeconfig := filepath.Join(dir, "kubeconfig")
	u.Must(clientcmd.WriteToFile(*all, kubeconfig))
	kubectl := fmt.Sprintf("#!/bin/sh\nexec %s --dir %s kubectl --kubeconfig %s \"$@\"\n", local, filepath.Join(u.dir, "hub"), kubeconfig)
	u.Must(os.WriteFile(filepath.Join(dir, "kubectl"), []byte(kubectl), 0o700))
	return func(commands string) string {
		u.Helper()
		cmd := exec.CommandContext(u.Ctx, "bash", "-euo", "pipefail", "-c", "member=documented\n"+commands) // as in one shell
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			u.Fatalf("running\n%s\n%v\n%s", commands, err, out)
		}
		return string(out)
	}
}
