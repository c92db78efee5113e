package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/seed-69ecc383/kruise/localcluster/binaries"
	"github.com/seed-69ecc383/kruise/localcluster/component"
	"github.com/seed-69ecc383/kruise/localcluster/kubernetes"
	"github.com/seed-69ecc383/kruise/localcluster/process"
)

// TestMain makes the test binary be kruise-local when it is called so, and each component when it is called that: what the tests run is the
// program itself, in processes of its own. A second name of the binary's file makes it Kubernetes, as if that was compiled.
func TestMain(m *testing.M) {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	name := filepath.Base(os.Args[0])
	if filepath.Base(self) == binaries.Compiled {
		if name == binaries.Compiled {
			name, os.Args = os.Args[1], os.Args[1:]
		}
		os.Exit(runKubernetes(name))
	}
	if _, ok := component.Lookup(name); ok || name == "kruise-local" {
		os.Exit(run())
	}
	compiled := filepath.Join(filepath.Dir(self), binaries.Compiled)
	if err := os.Link(self, compiled); err != nil {
		panic(err)
	}
	code := m.Run()
	os.Remove(compiled) // go test removes the whole folder
	os.Exit(code)
}

// runKubernetes acts as a program of Kubernetes.
func runKubernetes(name string) int {
	program, ok := kubernetes.Lookup(name)
	if !ok {
		panic("no program of Kubernetes: " + name)
	}
	if err := errors.Join(kubernetes.Stamp(), process.Tether()); err != nil {
		panic(err)
	}
	return program()
}

// kruiseLocal runs a verb on the cluster in dir and returns its standard output.
func kruiseLocal(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := tryKruiseLocal(t, dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryKruiseLocal(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	cmd := &exec.Cmd{Path: self, Args: append([]string{"kruise-local", "--dir", dir}, args...), Stdout: &out, Stderr: &progress}
	if err := cmd.Run(); err != nil {
		return out.String(), errors.New(strings.Join(args, " ") + ": " + err.Error() + "\n" + progress.String() + out.String())
	}
	return out.String(), nil
}

// clusterIn is the folder of a cluster that ends with the test, whatever becomes of it.
func clusterIn(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cluster")
	t.Cleanup(func() {
		if _, err := tryKruiseLocal(t, dir, "down"); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func clientOf(t *testing.T, kubeconfig string) clientset.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", strings.TrimSpace(kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := clientset.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// eventually waits for a condition, and fails the test with what is missing if it does not come true.
func eventually(t *testing.T, check func() string) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		missing := check()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(missing)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestAClusterFromUpToDown(t *testing.T) {
	ctx := context.Background()
	dir := clusterIn(t)
	client := clientOf(t, kruiseLocal(t, dir, "up", "--nodes", "3"))
	pids := processes(t, dir)
	if len(pids) != 5 {
		t.Fatalf("%d processes run, want 5", len(pids))
	}

	version, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion != "v1.36.3" || version.Major != "1" || version.Minor != "36" {
		t.Errorf("the server says it is %+v, want v1.36.3", version)
	}

	runDeployment(t, client)
	pod := onePod(t, client)
	changeImage(t, client, pod)
	resize(t, client, pod)
	claim(t, client)

	if err := client.AppsV1().Deployments("default").Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return err.Error()
		}
		if len(pods.Items) > 0 {
			return strconv.Itoa(len(pods.Items)) + " pods are still there"
		}
		return ""
	})

	kruiseLocal(t, dir, "down")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	eventually(t, gone(pids))
	kruiseLocal(t, dir, "down") // nothing to do is fine
}

// processes are the ids of the cluster's processes.
func processes(t *testing.T, dir string) []int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "run", "*.pid"))
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func TestASecondUpChangesOnlyWhatIsAsked(t *testing.T) {
	dir := clusterIn(t)
	client := clientOf(t, kruiseLocal(t, dir, "up", "--nodes", "1"))
	before := processes(t, dir)
	kruiseLocal(t, dir, "up")
	if after := processes(t, dir); !equal(before, after) {
		t.Errorf("processes were %v and are %v", before, after)
	}

	kruiseLocal(t, dir, "up", "--nodes", "2")
	nodes, err := client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 2 {
		t.Errorf("there are %d nodes, want 2", len(nodes.Items))
	}

	scheduler := pidOf(t, dir, component.Scheduler)
	if err := syscall.Kill(scheduler, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if out, err := tryKruiseLocal(t, dir, "status"); err == nil {
			return "status says all is well:\n" + out
		}
		return ""
	})
	kruiseLocal(t, dir, "up")
	kruiseLocal(t, dir, "status")
	if now := pidOf(t, dir, component.Scheduler); now == scheduler {
		t.Error("the scheduler was not started again")
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func pidOf(t *testing.T, dir, name string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "run", name+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestAStoppedNodeIsNotReadyUntilItStarts(t *testing.T) {
	dir := clusterIn(t)
	client := clientOf(t, kruiseLocal(t, dir, "up", "--nodes", "1"))
	ready := func(want corev1.ConditionStatus) func() string {
		return func() string {
			node, err := client.CoreV1().Nodes().Get(context.Background(), "sim-1", metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			for _, condition := range node.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status == want {
					return ""
				}
			}
			return "the node's Ready is not " + string(want)
		}
	}
	kruiseLocal(t, dir, "node", "stop", "sim-1")
	eventually(t, ready(corev1.ConditionUnknown))
	kruiseLocal(t, dir, "node", "start", "sim-1")
	eventually(t, ready(corev1.ConditionTrue))
}

func TestBareClustersRunSideBySideAndServePods(t *testing.T) {
	var clients []clientset.Interface
	for range 2 {
		dir := clusterIn(t)
		clients = append(clients, clientOf(t, kruiseLocal(t, dir, "up", "--bare", "--owner", strconv.Itoa(os.Getpid()))))
		if got := len(processes(t, dir)); got != 2 {
			t.Errorf("%d processes run, want 2", got)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
	if _, err := clients[0].CoreV1().Pods("default").Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods, err := clients[1].CoreV1().Pods("default").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 0 {
		t.Errorf("the second cluster has the first one's %d pods", len(pods.Items))
	}
}

func TestAComponentThatCannotStartIsReportedWithItsLog(t *testing.T) {
	dir := clusterIn(t)
	_, err := tryKruiseLocal(t, dir, "up", "--bare", "--k8s-args", "kube-apiserver:--no-such-flag")
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver ended") || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("got %v, want the end of the API server with the reason from its log", err)
	}
}

// TestGuestsGoWithTheCluster has a program beside the cluster that writes its files again and again.
func TestGuestsGoWithTheCluster(t *testing.T) {
	dir := clusterIn(t)
	kruiseLocal(t, dir, "up", "--bare")
	beside := filepath.Join(dir, "beside")
	if err := os.MkdirAll(beside, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(beside, "manager.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	certs := filepath.Join(beside, "manager", "certs")
	guest := exec.Command("sh", "-c", `while mkdir -p "$0" && echo key > "$0/key"; do sleep 0.01; done`, certs)
	guest.ExtraFiles = []*os.File{lock}
	guest.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := guest.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-guest.Process.Pid, syscall.SIGKILL) })
	if _, err := lock.WriteString(strconv.Itoa(guest.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	eventually(t, func() string {
		if _, err := os.Stat(filepath.Join(certs, "key")); err != nil {
			return err.Error()
		}
		return ""
	})
	kruiseLocal(t, dir, "down")
	ended := make(chan error, 1)
	go func() { ended <- guest.Wait() }()
	select {
	case err := <-ended:
		if status, ok := guest.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Errorf("the guest ended by itself: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the guest still runs")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// TestTheRemainsOfGuestsAreInNobodysWay: one that did not go with its cluster has written late.
func TestTheRemainsOfGuestsAreInNobodysWay(t *testing.T) {
	dir := clusterIn(t)
	if err := os.MkdirAll(filepath.Join(dir, "beside", "manager", "certs"), 0o700); err != nil {
		t.Fatal(err)
	}
	kruiseLocal(t, dir, "up", "--bare")
	kruiseLocal(t, dir, "down")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestProcessesEndWithTheirFolder(t *testing.T) {
	dir := clusterIn(t)
	kruiseLocal(t, dir, "up", "--bare")
	pids := processes(t, dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	eventually(t, gone(pids))
}

// gone names a process that is still there. One that has ended is there until its parent takes note.
func gone(pids []int) func() string {
	return func() string {
		for _, pid := range pids {
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				return "process " + strconv.Itoa(pid) + " is still there"
			}
		}
		return ""
	}
}
