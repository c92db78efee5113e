package inject

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

const twoContainers = `
metadata:
  name: web
  annotations: {sim.kruise.io/ready-delay.side: 2s}
spec:
  containers:
  - {name: main, image: nginx}
  - {name: side, image: envoy, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "1"}]}
`

// watchKeys notes, for each version of a ConfigMap of the namespace, its keys, until stop is called.
func (e *env) watchKeys() (stop func() []string) {
	e.Helper()
	watching, err := client.NewWithWatch(shared.Config, client.Options{Scheme: e.Scheme()})
	e.Must(err)
	ctx, cancel := context.WithCancel(e.Ctx)
	events, err := watching.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(e.Namespace))
	e.Must(err)
	var seen []string
	var running sync.WaitGroup
	running.Go(func() {
		for event := range events.ResultChan() {
			barrier, ok := event.Object.(*corev1.ConfigMap)
			if !ok || event.Type == watch.Deleted || !strings.HasSuffix(barrier.Name, "-barrier") {
				continue
			}
			var all []string
			for key := range barrier.Data {
				all = append(all, key)
			}
			slices.Sort(all)
			seen = append(seen, strings.Join(all, " "))
		}
	})
	return func() []string {
		cancel()
		running.Wait()
		return seen
	}
}

func (e *env) launched(name string) *corev1.Pod {
	e.Helper()
	var p *corev1.Pod
	e.Eventually(name+" is ready and all of it has started", func() error {
		p = e.pod(name)
		if !scene.IsReady(p) || p.Annotations[keys.ContainerLaunchPriorityCompleted] != "true" {
			return errors.New("it is not")
		}
		return nil
	})
	return p
}

// startedInOrder checks that each container started no earlier than the ones before it; the API tells whole seconds.
func (e *env) startedInOrder(p *corev1.Pod, names ...string) {
	e.Helper()
	var last metav1.Time
	for _, name := range names {
		for _, status := range p.Status.ContainerStatuses {
			if status.Name != name {
				continue
			}
			if status.State.Running == nil || status.State.Running.StartedAt.Before(&last) {
				e.Errorf("container %s is in %+v, which is not after %s", name, status.State, last)
				continue
			}
			last = status.State.Running.StartedAt
		}
	}
}

func TestHigherPriorityStartsFirst(t *testing.T) {
	e := newEnv(t)
	stop := e.watchKeys()
	e.newPod(twoContainers)
	e.Eventually("the first container runs and the other one can't be created", func() error {
		p := e.pod("web")
		for _, status := range p.Status.ContainerStatuses {
			if status.Name == "main" && (status.State.Waiting == nil || status.State.Waiting.Reason != "CreateContainerConfigError") {
				return fmt.Errorf("main is %+v", status.State)
			}
			if status.Name == "side" && status.State.Running == nil {
				return fmt.Errorf("side is %+v", status.State)
			}
		}
		if len(p.Status.ContainerStatuses) != 2 {
			return errors.New("there are no statuses")
		}
		return nil
	})
	p := e.launched("web")
	e.startedInOrder(p, "side", "main")
	if diff := cmp.Diff([]string{"p_1", "p_0 p_1"}, stop()); diff != "" {
		t.Errorf("keys of the barrier (-want +got):\n%s", diff)
	}
	barrier := e.barrier("web")
	owner := barrier.OwnerReferences
	if len(owner) != 1 || owner[0].UID != p.UID || owner[0].Controller != nil {
		t.Errorf("the barrier is owned by %+v", owner)
	}
	if barrier.Immutable == nil || !*barrier.Immutable {
		t.Error("kubelets have to watch the barrier although nothing changes any more")
	}
}

func (e *env) barrier(pod string) *corev1.ConfigMap {
	e.Helper()
	barrier := &corev1.ConfigMap{}
	e.Must(e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: pod + "-barrier"}, barrier))
	return barrier
}

func TestContainersOfADeploymentStartInTheOrderOfTheirList(t *testing.T) {
	e := newEnv(t)
	stop := e.watchKeys()
	e.apply(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {apps.kruise.io/container-launch-priority: Ordered, sim.kruise.io/ready-delay: 1s}
    spec: {containers: [{name: a, image: nginx}, {name: b, image: nginx}, {name: c, image: nginx}]}
`)
	var pods corev1.PodList
	e.Eventually("there is a Pod", func() error {
		e.Must(e.List(e.Ctx, &pods, client.InNamespace(e.Namespace)))
		if len(pods.Items) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	p := e.launched(pods.Items[0].Name)
	e.startedInOrder(p, "a", "b", "c")
	if diff := cmp.Diff([]string{"p_0", "p_-1 p_0", "p_-1 p_-2 p_0"}, stop()); diff != "" {
		t.Errorf("keys of the barrier (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(p.Name, p.GenerateName) || len(p.Name) != len(p.GenerateName)+5 {
		t.Errorf("the Pod of %s is called %s", p.GenerateName, p.Name)
	}
}

func TestPodsThatAskForNoOrderAreLeftAlone(t *testing.T) {
	e := newEnv(t)
	for name, containers := range map[string]string{
		"equal":  `[{name: a, image: nginx, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "3"}]}, {name: b, image: nginx, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "3"}]}]`,
		"zeros":  `[{name: a, image: nginx, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "0"}]}, {name: b, image: nginx}]`,
		"single": `[{name: a, image: nginx, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "3"}]}]`,
	} {
		p := e.newPod("metadata: {name: " + name + "}\nspec: {containers: " + containers + "}")
		for _, c := range p.Spec.Containers {
			for _, env := range c.Env {
				if env.Name == keys.ContainerBarrierEnv {
					t.Errorf("%s: container %s is held back", name, c.Name)
				}
			}
		}
	}
	_, err := e.tryPod(strings.Replace(twoContainers, `"1"`, `abc`, 1))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `container side has KRUISE_CONTAINER_PRIORITY="abc"`) {
		t.Errorf("a priority that is not a number was answered with %v", err)
	}
	long := strings.Repeat("x", 250)
	if _, err := e.tryPod(strings.Replace(twoContainers, "name: web", "name: "+long, 1)); !apierrors.IsInvalid(err) {
		t.Errorf("a name that is too long was answered with %v", err)
	}
	dry := e.newPod(strings.Replace(twoContainers, "name: web", "generateName: web-", 1), client.DryRunAll)
	if dry.Spec.Containers[0].Env[0].Name != keys.ContainerBarrierEnv {
		t.Errorf("a dry run does not show the barrier: %+v", dry.Spec.Containers[0].Env)
	}
	e.Never("a barrier is made", func() bool {
		var list corev1.ConfigMapList
		e.Must(e.List(e.Ctx, &list, client.InNamespace(e.Namespace)))
		return slices.ContainsFunc(list.Items, func(c corev1.ConfigMap) bool { return strings.HasSuffix(c.Name, "-barrier") })
	})
}

func TestABarrierThatIsDeletedComesBack(t *testing.T) {
	e := newEnv(t)
	e.newPod(twoContainers)
	e.launched("web")
	e.delete(e.barrier("web"))
	scene.Edit(e.Env, "web", &corev1.Pod{}, func(p *corev1.Pod) { p.Annotations["sim.kruise.io/kill"] = "main/1" })
	killed := time.Now()
	e.Eventually("main runs again", func() error {
		for _, status := range e.pod("web").Status.ContainerStatuses {
			if status.Name == "main" && (status.RestartCount != 1 || status.State.Running == nil) {
				return fmt.Errorf("main is %+v", status)
			}
		}
		return nil
	})
	if took := time.Since(killed); took > 60*time.Second {
		t.Errorf("it took %v", took)
	}
	if diff := cmp.Diff(map[string]string{"p_1": "true", "p_0": "true"}, e.barrier("web").Data); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestANewPodOfTheSameNameStartsInOrderAgain(t *testing.T) {
	e := newEnv(t)
	first := e.newPod(twoContainers)
	e.launched("web")
	// At once, so that the collector of garbage has no time for the barrier.
	e.delete(first, client.GracePeriodSeconds(0))
	stop := e.watchKeys()
	e.newPod(twoContainers)
	p := e.launched("web")
	e.startedInOrder(p, "side", "main")
	if got := stop(); !slices.Equal(got[max(0, len(got)-2):], []string{"p_1", "p_0 p_1"}) {
		t.Errorf("the barrier had %q", got)
	}
	if e.barrier("web").OwnerReferences[0].UID != p.UID {
		t.Error("the barrier is that of the Pod before")
	}
}

func TestAConfigMapOfSomebodyElseIsLeftAlone(t *testing.T) {
	e := newEnv(t)
	foreign := scene.Parse(e.Env, &corev1.ConfigMap{}, `{metadata: {name: web-barrier}, data: {mine: precious}}`)
	e.Must(e.Create(e.Ctx, foreign))
	e.newPod(twoContainers)
	e.Eventually("the user is told", func() error {
		if reasons := e.Reasons("web"); !slices.Contains(reasons, "BarrierConflict") {
			return fmt.Errorf("events are %v", reasons)
		}
		return nil
	})
	if diff := cmp.Diff(foreign.Data, e.barrier("web").Data); diff != "" {
		t.Errorf("the ConfigMap has changed (-before +after):\n%s", diff)
	}
}

func TestTheLaunchExamples(t *testing.T) {
	e := newEnv(t)
	t.Cleanup(func() { e.forget(&v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "launch-order"}}) })
	e.example("launch-priority.yaml")
	e.startedInOrder(e.launched("launch-priority"), "proxy", "app")
	e.example("sidecarset-launch-order.yaml", "launch-order")
	p := e.launched("launch-order")
	e.startedInOrder(p, "agent", "app")
	agent := p.Spec.Containers[0]
	if got := fmt.Sprint(agent.Name, " ", agent.Resources.Limits.Cpu(), " ", agent.Resources.Limits.Memory()); got != "agent 100m 64Mi" {
		t.Errorf("the first container is %s", got)
	}
}
