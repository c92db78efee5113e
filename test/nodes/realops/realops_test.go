// Package realops asks for what daemons do of a real kubelet and a real containerd: containers are recreated, and asked questions.
package realops

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

const namespace = "real"

// world is a cluster of a real node with its daemon, and a manager beside it.
type world struct{ *scene.Stage }

func TestOnARealNode(t *testing.T) {
	daemon, err := cluster.Binary("kruise-daemon")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{scene.NewStage(t, cluster.Options{RealNodes: 1, Args: []string{"--daemon", daemon}})}
	w.Describe = func() string {
		events, _ := w.Kubectl(w.Ctx, "get", "events,pods,crr", "-A", "--sort-by=.metadata.creationTimestamp") // only more to read
		return events
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the daemon said:\n%s", w.daemonLog())
		}
	})
	w.Must(w.Install(w.Ctx))
	manager := w.Launch(
		"manager", cluster.ManagerOptions{Args: []string{"--feature-gates=ImagePullJobGate=true", "--nodeimage-creation-delay=1s"}},
	)
	w.Must(manager.WaitReady(w.Ctx))
	w.Must(w.Client.Create(w.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	t.Run(
		"containers are recreated in order, with hook and grace, and their sibling is left alone",
		func(t *testing.T) { w.on(t).recreate() },
	)
	t.Run("the daemon is killed in a hook, and while a container ends", func(t *testing.T) { w.on(t).killDaemon() })
	t.Run("containers look into Pods that run, and their exit codes make the status", func(t *testing.T) { w.on(t).look() })
	t.Run("idle Pods are marked, and go first", func(t *testing.T) { w.on(t).idle() })
	t.Run("an image that a job has pulled ahead needs no pull when a Pod is updated in place", func(t *testing.T) { w.on(t).pullAhead() })
	t.Run("a job tells of an image that the registry does not have", func(t *testing.T) { w.on(t).refuse() })
	t.Run("a job outlives daemon and container runtime", func(t *testing.T) { w.on(t).interrupt() })
	t.Run("an environment changes in place, after the hook of its container", func(t *testing.T) { w.on(t).environment() })
	t.Run("a Deployment is released in steps, and no call of its Service fails", func(t *testing.T) { w.on(t).release() })
}

func (w *world) on(t *testing.T) *world { return &world{w.On(t)} }

// diary is a Pod all of whose containers write into the same diary: when they start, are told to end, and when their hook begins and ends.
const diary = `
apiVersion: v1
kind: Pod
metadata: {namespace: real, name: NAME}
spec:
  terminationGracePeriodSeconds: 12
  volumes: [{name: log, emptyDir: {}}]
  containers:
  - name: a
    image: busybox:1.36
    command: [sh, -c, "trap 'echo a told to end >> /log/diary; sleep 3; echo a ends >> /log/diary; exit 0' TERM; echo a starts >> /log/diary; while true; do sleep 0.2; done"]
    lifecycle: {preStop: {exec: {command: [sh, -c, "echo a hook begins >> /log/diary; sleep 2; echo a hook ends >> /log/diary"]}}}
    volumeMounts: [{name: log, mountPath: /log}]
  - name: b
    image: busybox:1.36
    command: [sh, -c, "trap 'echo b told to end >> /log/diary; exit 0' TERM; echo b starts >> /log/diary; while true; do sleep 0.2; done"]
    volumeMounts: [{name: log, mountPath: /log}]
  - name: sibling
    image: busybox:1.36
    command: [sh, -c, "trap 'echo sibling told to end >> /log/diary; exit 0' TERM; while true; do sleep 0.2; done"]
    volumeMounts: [{name: log, mountPath: /log}]
`

// write runs a Pod that keeps a diary, and waits until it is ready.
func (w *world) write(name string) *corev1.Pod {
	w.Helper()
	p := &corev1.Pod{}
	w.Must(yaml.UnmarshalStrict([]byte(strings.Replace(diary, "NAME", name, 1)), p))
	w.Must(w.Client.Create(w.Ctx, p))
	w.Eventually("the Pod is ready", func() error {
		w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(p), p))
		if !pod.IsReady(p) {
			return errors.New("it is not")
		}
		return nil
	})
	w.Eventually("both have written", func() error {
		if got := w.read(p); strings.Count(got, "starts") != 2 {
			return errors.New(got)
		}
		return nil
	})
	return p
}

// read returns the diary of a Pod.
func (w *world) read(p *corev1.Pod) string {
	w.Helper()
	return strings.ReplaceAll(w.exec(p, "sibling", "cat", "/log/diary"), "\n", ", ")
}

func (w *world) exec(p *corev1.Pod, container string, command ...string) string {
	w.Helper()
	out, err := w.Kubectl(w.Ctx, append([]string{"-n", p.Namespace, "exec", p.Name, "-c", container, "--"}, command...)...)
	w.Must(err)
	return strings.TrimSpace(out)
}

func (w *world) ask(p *corev1.Pod, strategy string) *v1beta1.ContainerRecreateRequest {
	w.Helper()
	r := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.Name}}
	w.Must(yaml.UnmarshalStrict([]byte(strategy), &r.Spec.Strategy))
	r.Spec.PodName = p.Name
	r.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: "a"}, {Name: "b"}}
	w.Must(w.Client.Create(w.Ctx, r))
	return r
}

// succeeds waits until a request has ended well, and checks that the Pod is the one that it was, with a and b restarted once.
func (w *world) succeeds(r *v1beta1.ContainerRecreateRequest, before *corev1.Pod) {
	w.Helper()
	w.Eventually("the request has ended", func() error {
		w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(r), r))
		if r.Status.Phase != v1beta1.ContainerRecreateRequestCompleted {
			return fmt.Errorf("it is %+v", r.Status)
		}
		return nil
	})
	for _, s := range r.Status.ContainerRecreateStates {
		if s.Phase != v1beta1.ContainerRecreateRequestSucceeded {
			w.Errorf("container %s: %+v", s.Name, s)
		}
	}
	after := &corev1.Pod{}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(before), after))
	if after.UID != before.UID || after.Status.PodIP != before.Status.PodIP {
		w.Errorf("the Pod was %s at %s, is %s at %s", before.UID, before.Status.PodIP, after.UID, after.Status.PodIP)
	}
	for name, restarts := range map[string]int32{"a": 1, "b": 1, "sibling": 0} {
		was, is := pod.ContainerStatus(before, name), pod.ContainerStatus(after, name)
		if is.RestartCount != restarts || (was.ContainerID == is.ContainerID) != (restarts == 0) {
			w.Errorf(
				"container %s was %s, is %s after %d restarts, want %d", name, was.ContainerID, is.ContainerID, is.RestartCount, restarts,
			)
		}
	}
}

func (w *world) recreate() {
	p := w.write("ordered")
	before := w.read(p)
	r := w.ask(p, `{orderedRecreate: true, minStartedSeconds: 2}`)
	w.succeeds(r, p)
	got := strings.TrimPrefix(w.read(p), before+", ")
	want := "a hook begins, a hook ends, a told to end, a ends, a starts, b told to end, b starts"
	if got != want {
		w.Errorf("what happened is %q, want %q", got, want)
	}
	events, err := w.Kubectl(
		w.Ctx, "-n", namespace, "get", "events", "--field-selector=involvedObject.name="+p.Name+",reason=Killing", "-o",
		"jsonpath={.items[*].message}",
	)
	w.Must(err)
	for _, name := range []string{"a", "b"} {
		if want := "Stopping container " + name + " by ContainerRecreateRequest " + r.Name; !strings.Contains(events, want) {
			w.Errorf("the events are %q, want %q among them", events, want)
		}
	}
}

// killDaemon kills the daemon in the middle of the hook, which is cut off with it and run again, and then in the middle of the container's end.
func (w *world) killDaemon() {
	p := w.write("killed")
	before := w.read(p)
	r := w.ask(p, `{forceRecreate: true}`)
	for _, line := range []string{"a hook begins", "a told to end"} {
		w.Eventually(line, func() error {
			if got := w.read(p); !strings.Contains(got, line) {
				return errors.New(got)
			}
			return nil
		})
		w.restartDaemon()
	}
	w.succeeds(r, p)
	lines := strings.Split(strings.TrimPrefix(w.read(p), before+", "), ", ")
	for line, want := range map[string]int{"a hook begins": 2, "a hook ends": 1, "a ends": 1, "a starts": 1, "b told to end": 1, "b starts": 1} {
		got := 0
		for _, l := range lines {
			if l == line {
				got++
			}
		}
		if got != want {
			w.Errorf("%q happened %d times, want %d: %s", line, got, want, lines)
		}
	}
}

// restartDaemon kills the daemon and has it started again.
func (w *world) restartDaemon() {
	w.Helper()
	files, err := filepath.Glob(filepath.Join(w.Dir, "cluster", "run", "kruise-daemon@*.pid"))
	w.Must(err)
	if len(files) != 1 {
		w.Fatalf("the daemons are %v", files)
	}
	text, err := os.ReadFile(files[0])
	w.Must(err)
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	w.Must(err)
	w.Must(syscall.Kill(-id, syscall.SIGKILL))
	_, err = w.Local(w.Ctx, "up")
	w.Must(err)
}

func (w *world) daemonLog() string {
	files, err := filepath.Glob(filepath.Join(w.Dir, "cluster", "logs", "kruise-daemon@*.log"))
	if err != nil || len(files) == 0 {
		return "nothing"
	}
	text, _ := os.ReadFile(files[0]) // only more to read
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// idle is the story of examples/probe-idle.yaml: a script that fails says why on its standard error, and the Pod whose script succeeds goes first.
func (w *world) idle() {
	set := &v1beta1.CloneSet{}
	w.Must(yaml.UnmarshalStrict([]byte(`
metadata: {namespace: real, name: games}
spec:
  replicas: 3
  selector: {matchLabels: {app: game-server}}
  template:
    metadata: {labels: {app: game-server}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: busybox:1.36
        command: [sh, -c, "mkdir -p /home/game; printf '#!/bin/sh\nif [ -f /idle ]; then echo nobody; else echo 2 players online >&2; exit 1; fi\n' > /home/game/idle.sh; chmod +x /home/game/idle.sh; sleep 100000"]
`), set))
	w.Must(w.Client.Create(w.Ctx, set))
	root, err := cluster.Root()
	w.Must(err)
	text, err := os.ReadFile(filepath.Join(root, "examples", "probe-idle.yaml"))
	w.Must(err)
	marker := &v1alpha1.PodProbeMarker{}
	w.Must(yaml.UnmarshalStrict(text, marker))
	marker.Namespace = namespace
	w.Must(w.Client.Create(w.Ctx, marker))
	var pods []corev1.Pod
	w.Eventually("all say that they are busy", func() error {
		pods = w.games()
		if len(pods) != 3 {
			return fmt.Errorf("there are %d", len(pods))
		}
		for i := range pods {
			if got := idleness(&pods[i]); got != "False, 2 players online, , 10" {
				return errors.New(got)
			}
		}
		return nil
	})
	w.exec(&pods[1], "main", "touch", "/idle")
	asked := time.Now()
	w.Eventually("one says that it is idle", func() error {
		w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(&pods[1]), &pods[1]))
		if got := idleness(&pods[1]); got != "True, nobody, true, -10" {
			return errors.New(got)
		}
		return nil
	})
	if took := time.Since(asked); took > 8*time.Second {
		w.Errorf("it took %s, want the period of 5 s and 3 s at most", took)
	}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(set), set))
	two := set.DeepCopy()
	*two.Spec.Replicas = 2
	w.Must(w.Client.Patch(w.Ctx, two, client.MergeFrom(set)))
	w.Eventually("the idle one has gone", func() error {
		left := w.games()
		if len(left) != 2 || slices.ContainsFunc(left, func(p corev1.Pod) bool { return p.UID == pods[1].UID }) {
			return fmt.Errorf("%d are left", len(left))
		}
		return nil
	})
}

func (w *world) games() []corev1.Pod {
	w.Helper()
	var list corev1.PodList
	w.Must(w.Client.List(w.Ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": "game-server"}))
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// idleness is what a Pod says: the condition with its message, the label, and the deletion cost.
func idleness(p *corev1.Pod) string {
	c := pod.Condition(p, "game.io/idle")
	if c == nil {
		return "nothing"
	}
	return fmt.Sprintf(
		"%s, %s, %s, %s", c.Status, c.Message, p.Labels["gameserver-idle"], p.Annotations["controller.kubernetes.io/pod-deletion-cost"],
	)
}
