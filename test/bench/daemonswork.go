package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/kit/fakecri"
)

const (
	// restartsAtOnce is how many containers are restarted at the same time, each of another Pod; changedProbes of how many Pods the result
	// of a probe changes.
	restartsAtOnce, changedProbes = 100, 100
	// probedCondition is the condition that shows the result of a probe, and probePeriod how often each Pod is probed.
	probedCondition = "bench.example/idle"
	probePeriod     = 10
)

// runtimeOfAll is the container runtime of all nodes.
type runtimeOfAll struct {
	cri *fakecri.Runtime
	w   *daemonsWorld

	mu sync.Mutex
	// pods are those of which a container is to be restarted, by the identity of the container; failing are the containers whose probes
	// fail; problems are those of the kubelets.
	pods     map[string]*corev1.Pod
	failing  map[string]bool
	problems []error
}

func newRuntimeOfAll(w *daemonsWorld) *runtimeOfAll {
	r := &runtimeOfAll{cri: fakecri.New(), w: w, pods: map[string]*corev1.Pod{}, failing: map[string]bool{}}
	r.cri.OnExec, r.cri.OnStop = r.exec, r.stop
	return r
}

func (r *runtimeOfAll) exec(_ context.Context, asked *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing[asked.ContainerId] {
		return &runtimeapi.ExecSyncResponse{ExitCode: 1, Stderr: []byte("busy")}, nil
	}
	return &runtimeapi.ExecSyncResponse{Stdout: []byte("idle")}, nil
}

// stop has the kubelet of a container's node start another one in its place.
func (r *runtimeOfAll) stop(id string, _ int64) error {
	r.mu.Lock()
	p := r.pods[id]
	delete(r.pods, id)
	r.mu.Unlock()
	if p == nil {
		return nil
	}
	go func() {
		if err := r.restart(context.Background(), p, id); err != nil {
			r.mu.Lock()
			r.problems = append(r.problems, err)
			r.mu.Unlock()
		}
	}()
	return nil
}

// add has the runtime run a container of a Pod.
func (r *runtimeOfAll) add(p *corev1.Pod, name, id string) {
	c := &fakecri.Container{PodUID: string(p.UID)}
	c.Id, c.State, c.CreatedAt = id, runtimeapi.ContainerState_CONTAINER_RUNNING, time.Now().UnixNano()
	c.Metadata = &runtimeapi.ContainerMetadata{Name: name}
	r.cri.AddContainer(c)
}

// restart tells of a new container in place of one that has ended.
func (r *runtimeOfAll) restart(ctx context.Context, p *corev1.Pod, id string) error {
	if err := r.w.hub().Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
		return err
	}
	before := client.StrategicMergeFrom(p.DeepCopy())
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		if s.ContainerID == "containerd://"+id {
			next := strings.Repeat("f", 8) + id[8:]
			r.add(p, s.Name, next)
			s.ContainerID, s.RestartCount = "containerd://"+next, s.RestartCount+1
			s.State.Running.StartedAt = metav1.Now()
		}
	}
	return r.w.hub().Client.Status().Patch(ctx, p, before)
}

// firstContainer returns the identity of the first container of a Pod, as the runtime knows it.
func firstContainer(p *corev1.Pod) string {
	return strings.TrimPrefix(p.Status.ContainerStatuses[0].ContainerID, "containerd://")
}

// fill has the runtime run the first container of each Pod.
func (w *daemonsWorld) fill(ctx context.Context) error {
	for i := range crowdNamespaces {
		var list corev1.PodList
		if err := w.hub().Client.List(ctx, &list, client.InNamespace(crowdNamespace(i))); err != nil {
			return err
		}
		for k := range list.Items {
			p := &list.Items[k]
			w.runtime.add(p, p.Status.ContainerStatuses[0].Name, firstContainer(p))
		}
	}
	return nil
}

// pullEverywhere has an image pulled on all nodes at the same time.
func (w *daemonsWorld) pullEverywhere(ctx context.Context) error {
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "everywhere"}}
	job.Spec.Image = "registry.example/team/new:v1"
	job.Spec.Parallelism = new(intstr.FromInt(w.nodes))
	job.Spec.ImagePullPolicy = v1beta1.PullAlways // all nodes have one runtime, which has the image as soon as the first has pulled it
	if err := w.hub().Client.Create(ctx, job); err != nil {
		return err
	}
	return w.await(ctx, "all nodes have the image", func() (bool, error) {
		err := w.hub().Client.Get(ctx, client.ObjectKeyFromObject(job), job)
		return int(job.Status.Succeeded) == w.nodes, err
	})
}

// firstPods returns Pods, each of another node as far as there are so many.
func (w *daemonsWorld) firstPods(ctx context.Context, number int) ([]*corev1.Pod, error) {
	var out []*corev1.Pod
	for i := range crowdNamespaces {
		var list corev1.PodList
		if err := w.hub().Client.List(ctx, &list, client.InNamespace(crowdNamespace(i)),
			client.Limit(int64(number/crowdNamespaces))); err != nil {
			return nil, err
		}
		for k := range list.Items {
			out = append(out, &list.Items[k])
		}
	}
	return out, nil
}

// restartContainers has the first container of some Pods restarted.
func (w *daemonsWorld) restartContainers(ctx context.Context) error {
	pods, err := w.firstPods(ctx, restartsAtOnce)
	if err != nil {
		return err
	}
	for _, p := range pods {
		w.runtime.mu.Lock()
		w.runtime.pods[firstContainer(p)] = p
		w.runtime.mu.Unlock()
	}
	if err := atOnce(fleetWorkers, len(pods), func(number int) error {
		p := pods[number]
		request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
		request.Spec.PodName = p.Name
		request.Spec.Containers = []v1beta1.ContainerRecreateRequestContainer{{Name: p.Spec.Containers[0].Name}}
		return w.hub().Client.Create(ctx, request)
	}); err != nil {
		return err
	}
	return w.await(ctx, "all containers are restarted", func() (bool, error) {
		var all v1beta1.ContainerRecreateRequestList
		if err := w.hub().Client.List(ctx, &all); err != nil {
			return false, err
		}
		ended := 0
		for i := range all.Items {
			for _, s := range all.Items[i].Status.ContainerRecreateStates {
				switch s.Phase {
				case v1beta1.ContainerRecreateRequestSucceeded:
					ended++
				case v1beta1.ContainerRecreateRequestFailed:
					return false, fmt.Errorf("request %s failed: %s", all.Items[i].Name, s.Message)
				}
			}
		}
		w.runtime.mu.Lock()
		defer w.runtime.mu.Unlock()
		if len(w.runtime.problems) > 0 {
			return false, w.runtime.problems[0]
		}
		return ended == len(pods), nil
	})
}

// beginProbes has all Pods probed, and waits until each shows its first result.
func (w *daemonsWorld) beginProbes(ctx context.Context) error {
	for i := range crowdNamespaces {
		marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: crowdNamespace(i), Name: "idle"}}
		marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "checkout"}}
		probe := v1alpha1.PodContainerProbe{Name: "idle", ContainerName: "app", PodConditionType: probedCondition}
		probe.Probe.Exec, probe.Probe.PeriodSeconds = &corev1.ExecAction{Command: []string{"/idle"}}, probePeriod
		marker.Spec.Probes = []v1alpha1.PodContainerProbe{probe}
		if err := w.hub().Client.Create(ctx, marker); err != nil {
			return err
		}
	}
	counted := 0
	return w.await(ctx, "all Pods show the result of their probe", func() (bool, error) {
		if err := w.awaitCalm(ctx); err != nil {
			return false, err
		}
		var all corev1.PodList
		if err := w.hub().Client.List(ctx, &all); err != nil {
			return false, err
		}
		shown := 0
		for i := range all.Items {
			if isProbed(&all.Items[i], corev1.ConditionTrue) {
				shown++
			}
		}
		if shown != counted {
			counted = shown
			fmt.Fprintf(os.Stderr, "%d of %d Pods show the result\n", shown, len(all.Items))
		}
		return shown == len(all.Items), nil
	})
}

// changeProbes has the probes of some Pods fail, and waits until they show it.
func (w *daemonsWorld) changeProbes(ctx context.Context) error {
	pods, err := w.firstPods(ctx, changedProbes)
	if err != nil {
		return err
	}
	w.runtime.mu.Lock()
	for _, p := range pods {
		w.runtime.failing[firstContainer(p)] = true
	}
	w.runtime.mu.Unlock()
	for _, p := range pods {
		if err := w.until(ctx, "Pod "+p.Name+" shows that its probe fails", func() (bool, error) {
			err := w.hub().Client.Get(ctx, client.ObjectKeyFromObject(p), p)
			return isProbed(p, corev1.ConditionFalse), err
		}); err != nil {
			return err
		}
	}
	return nil
}

func isProbed(p *corev1.Pod, want corev1.ConditionStatus) bool {
	c := pod.Condition(p, probedCondition)
	return c != nil && c.Status == want
}
