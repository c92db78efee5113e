package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/seed-69ecc383/kruise/localcluster/internal/needs"
	"github.com/seed-69ecc383/kruise/localcluster/realnode"
	"github.com/seed-69ecc383/kruise/localcluster/simnode"
)

// realNodes is a cluster with two of them.
type realNodes struct {
	*testing.T
	dir, kubeconfig string
	client          kubernetes.Interface
}

func TestRealNodes(t *testing.T) {
	needs.RealNodes(t)
	dir := clusterIn(t)
	kubeconfig := strings.TrimSpace(kruiseLocal(t, dir, "up", "--real-nodes", "2"))
	r := realNodes{T: t, dir: dir, kubeconfig: kubeconfig, client: clientOf(t, kubeconfig)}
	r.areReady()
	// A group, which is over when all in it are.
	t.Run("they", func(t *testing.T) {
		for name, check := range map[string]func(realNodes){
			"run Pods, with exec and logs":                     realNodes.runPods,
			"restart a container of a new image, and it alone": realNodes.changeImages,
			"end Pods gracefully":                              realNodes.endGracefully,
			"tell of images that do not exist":                 realNodes.lackImages,
			"keep the data of claims":                          realNodes.keepData,
			"connect Pods with each other and the machine":     realNodes.connect,
			"connect Pods with the API server":                 realNodes.connectToAPI,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := r
				r.T = t
				check(r)
			})
		}
	})
	t.Run("they are repaired under running Pods", func(t *testing.T) { r.T = t; r.areRepaired() })
	t.Run("they go without a trace, even after a crash", func(t *testing.T) { r.T = t; r.leaveNoTrace() })
}

func (r realNodes) areReady() {
	nodes, err := r.client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	if len(nodes.Items) != 2 {
		r.Errorf("there are %d nodes, want 2 real ones and no simulated one", len(nodes.Items))
	}
	for i := range nodes.Items {
		if label := nodes.Items[i].Labels[simnode.LabelNode]; label != realnode.Real {
			r.Errorf("node %s is labelled %s=%s, want %s", nodes.Items[i].Name, simnode.LabelNode, label, realnode.Real)
		}
	}
}

// start creates a Pod with one container, "app", and waits until it is ready.
func (r realNodes) start(name string, change func(*corev1.PodSpec)) *corev1.Pod {
	r.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			Containers:                    []corev1.Container{{Name: "app", Image: "app:v1"}},
		},
	}
	change(&pod.Spec)
	if _, err := r.client.CoreV1().Pods("default").Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	return r.awaitPod(name, func(pod *corev1.Pod) string {
		if pod.Status.Phase != corev1.PodRunning {
			return "is not running"
		}
		for _, status := range pod.Status.ContainerStatuses {
			if !status.Ready {
				return "has a container that is not ready"
			}
		}
		return ""
	})
}

// awaitPod waits until a Pod misses nothing.
func (r realNodes) awaitPod(name string, missing func(*corev1.Pod) string) *corev1.Pod {
	r.Helper()
	var pod *corev1.Pod
	eventually(r.T, func() string {
		var err error
		if pod, err = r.client.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		if what := missing(pod); what != "" {
			return fmt.Sprintf("Pod %s %s: %s", name, what, pod.Status.String())
		}
		return ""
	})
	return pod
}

func (r realNodes) remove(name string) {
	r.Helper()
	if err := r.client.CoreV1().Pods("default").Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		r.Fatal(err)
	}
	eventually(r.T, func() string {
		_, err := r.client.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return "Pod " + name + " is still there"
	})
}

// exec runs a command in the container "app" and returns what it prints.
func (r realNodes) exec(pod string, command ...string) string {
	r.Helper()
	out, err := r.tryExec(pod, command...)
	if err != nil {
		r.Fatal(err)
	}
	return out
}

func (r realNodes) tryExec(pod string, command ...string) (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", r.kubeconfig)
	if err != nil {
		return "", err
	}
	request := r.client.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "app", Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, request.URL().String())
	if err != nil {
		return "", err
	}
	var out, complaint bytes.Buffer
	err = executor.StreamWithContext(context.Background(), remotecommand.StreamOptions{Stdout: &out, Stderr: &complaint})
	if err != nil {
		return "", fmt.Errorf("running %q in Pod %s: %w\n%s%s", command, pod, err, complaint.String(), out.String())
	}
	return strings.TrimSpace(out.String()), nil
}

func (r realNodes) runPods() {
	pod := r.start("usual", func(*corev1.PodSpec) {})
	if got := r.exec(pod.Name, "cat", "/etc/image-tag"); got != "v1" {
		r.Errorf("exec says the image's tag is %q, want v1", got)
	}
	log, err := r.client.CoreV1().Pods("default").GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(context.Background())
	if err != nil {
		r.Fatal(err)
	}
	if want := "serving /srv/www of tag v1 at port 80"; !strings.Contains(string(log), want) {
		r.Errorf("the log is %q, want %q in it", log, want)
	}
}

func (r realNodes) changeImages() {
	before := r.start("changing", func(spec *corev1.PodSpec) {
		spec.Containers = append(spec.Containers, corev1.Container{Name: "other", Image: "busybox:1", Command: []string{"sleep", "3600"}})
	})
	patch := []byte(`{"spec":{"containers":[{"name":"app","image":"app:v2"}]}}`)
	_, err := r.client.CoreV1().Pods("default").
		Patch(context.Background(), before.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		r.Fatal(err)
	}
	after := r.awaitPod(before.Name, func(pod *corev1.Pod) string {
		if app := pod.Status.ContainerStatuses[0]; app.RestartCount != 1 || !app.Ready {
			return "has not restarted its container"
		}
		return ""
	})
	if got := r.exec(after.Name, "cat", "/etc/image-tag"); got != "v2" {
		r.Errorf("exec says the image's tag is %q, want v2", got)
	}
	if after.Status.PodIP != before.Status.PodIP {
		r.Errorf("the Pod's address was %s and is %s", before.Status.PodIP, after.Status.PodIP)
	}
	if after.Status.ContainerStatuses[0].ImageID == before.Status.ContainerStatuses[0].ImageID {
		r.Errorf("the image ID is still %s", after.Status.ContainerStatuses[0].ImageID)
	}
	if other := after.Status.ContainerStatuses[1]; other.RestartCount != 0 {
		r.Errorf("the other container restarted %d times", other.RestartCount)
	}
}

// hostFolder gives the container "app" a folder of this machine at /host.
func hostFolder(spec *corev1.PodSpec, folder string) {
	spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}}}}
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "host", MountPath: "/host"}}
}

func (r realNodes) endGracefully() {
	folder := r.TempDir()
	r.start("polite", func(spec *corev1.PodSpec) {
		hostFolder(spec, folder)
		spec.TerminationGracePeriodSeconds = new(int64(60))
		spec.Containers[0].Command = []string{"sh", "-c", "trap 'sleep 1; echo goodbye >/host/words; exit 0' TERM; sleep 3600 & wait"}
	})
	r.remove("polite")
	words, err := os.ReadFile(filepath.Join(folder, "words"))
	if err != nil || string(words) != "goodbye\n" {
		r.Errorf("the container's last words were %q (%v), want goodbye", words, err)
	}
}

func (r realNodes) lackImages() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "imageless"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example/no-such:v1"}}},
	}
	if _, err := r.client.CoreV1().Pods("default").Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	r.awaitPod(pod.Name, func(pod *corev1.Pod) string {
		for _, status := range pod.Status.ContainerStatuses {
			if waiting := status.State.Waiting; waiting != nil && waiting.Reason == "ImagePullBackOff" {
				return ""
			}
		}
		return "does not say ImagePullBackOff"
	})
}

func (r realNodes) keepData() {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if _, err := r.client.CoreV1().PersistentVolumeClaims("default").Create(context.Background(), claim, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	withData := func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}}}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(1000))}
		spec.Containers[0].Env = []corev1.EnvVar{{Name: "PORT", Value: "8080"}} // the usual one is root's
	}
	r.start("writer", withData)
	r.exec("writer", "sh", "-c", "echo kept >/data/file")
	r.remove("writer")
	r.start("reader", withData)
	if got := r.exec("reader", "cat", "/data/file"); got != "kept" {
		r.Errorf("the second Pod reads %q, want what the first has written", got)
	}
}

// onNode has a Pod run on a node of choice.
func onNode(name string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) { spec.NodeSelector = map[string]string{corev1.LabelHostname: name} }
}

func (r realNodes) connect() {
	r.start("here", onNode("real-0"))
	there := r.start("there", onNode("real-1"))
	url := "http://" + there.Status.PodIP + "/"
	if got := r.exec("here", "timeout", "10", "wget", "-q", "-O", "-", url); got != "v1" {
		r.Errorf("a Pod gets %q from a Pod of the other node, want v1", got)
	}
	response, err := http.Get(url)
	if err != nil {
		r.Fatal(err)
	}
	defer response.Body.Close()
	if got, err := io.ReadAll(response.Body); err != nil || string(got) != "v1\n" {
		r.Errorf("this machine gets %q from a Pod (%v), want v1", got, err)
	}
}

func (r realNodes) connectToAPI() {
	folder := r.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(folder, "whoami"), "./testdata/whoami")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		r.Fatalf("building the client: %v\n%s", err, out)
	}
	r.start("client", func(spec *corev1.PodSpec) { hostFolder(spec, folder) })
	if got, want := r.exec("client", "/host/whoami"), "system:serviceaccount:default:default"; !strings.Contains(got, want) {
		r.Errorf("the API server answers the Pod %q, want that it is %s", got, want)
	}
}

// areRepaired kills a node's processes and brings them up again.
func (r realNodes) areRepaired() {
	before := r.awaitPod("here", func(*corev1.Pod) string { return "" })
	for _, program := range []string{realnode.Kubelet, realnode.Containerd} {
		if err := syscall.Kill(pidOf(r.T, r.dir, program+"@real-0"), syscall.SIGKILL); err != nil {
			r.Fatal(err)
		}
	}
	if out, err := tryKruiseLocal(r.T, r.dir, "status"); err == nil {
		r.Errorf("status says all is well:\n%s", out)
	}
	kruiseLocal(r.T, r.dir, "up")
	kruiseLocal(r.T, r.dir, "status")
	eventually(r.T, func() string { // a new kubelet knows no Pod until the API server has told it
		got, err := r.tryExec("here", "cat", "/etc/image-tag")
		if err != nil {
			return err.Error()
		}
		if got != "v1" {
			return fmt.Sprintf("exec says the image's tag is %q, want v1", got)
		}
		return ""
	})
	after := r.awaitPod("here", func(*corev1.Pod) string { return "" })
	if b, a := before.Status.ContainerStatuses[0], after.Status.ContainerStatuses[0]; a.ContainerID != b.ContainerID {
		r.Errorf("the container was replaced: %s became %s", b.ContainerID, a.ContainerID)
	}
}
