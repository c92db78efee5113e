package realnode

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// stepLimit is how long after the readiness of one group of containers the next one may start. A kubelet by itself tries again after ten to fifteen
// seconds.
const stepLimit = 5 * time.Second

// launch is when each container of a Pod was first seen to run, and when to be ready.
type launch struct{ running, ready map[string]time.Time }

func (w *world) apply(example string) {
	w.Helper()
	root, err := cluster.Root()
	w.Must(err)
	w.Must(w.ApplyFileIn(w.Ctx, filepath.Join(root, "examples", example), namespace))
}

// watchLaunch looks at a Pod until all of its containers are ready, and checks that each group started after the ones before it were ready, and soon.
func (w *world) watchLaunch(name string, not types.UID, groups ...[]string) *corev1.Pod {
	w.Helper()
	l := launch{running: map[string]time.Time{}, ready: map[string]time.Time{}}
	var p *corev1.Pod
	w.Eventually(name+" has launched", func() error {
		p = &corev1.Pod{}
		if err := w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, p); err != nil {
			return err
		}
		if p.UID == not {
			return errors.New("it is the Pod before")
		}
		now := time.Now()
		for _, status := range p.Status.ContainerStatuses {
			if _, seen := l.running[status.Name]; !seen && status.State.Running != nil {
				l.running[status.Name] = now
			}
			if _, seen := l.ready[status.Name]; !seen && status.Ready {
				l.ready[status.Name] = now
			}
		}
		if len(p.Spec.Containers) != len(l.ready) {
			return fmt.Errorf("ready are %v of %d", l.ready, len(p.Spec.Containers))
		}
		return nil
	})
	for i := 1; i < len(groups); i++ {
		var before time.Time
		for _, container := range groups[i-1] {
			before = latest(before, l.ready[container])
		}
		for _, container := range groups[i] {
			took := l.running[container].Sub(before)
			w.Logf("container %s of %s ran %v after %v were ready", container, name, took.Round(10*time.Millisecond), groups[i-1])
			if took < 0 || took > stepLimit {
				w.Errorf("container %s of %s ran %v after %v were ready, want at most %v", container, name, took, groups[i-1], stepLimit)
			}
		}
	}
	return p
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// injected applies an example with a SidecarSet and a Pod, and creates the Pod anew if it came before the SidecarSet was known; it returns the UID of
// such a one, or nothing.
func (w *world) injected(example, name string) types.UID {
	w.Helper()
	w.apply(example)
	p := &corev1.Pod{}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, p))
	if len(p.Spec.Containers) > 1 {
		return ""
	}
	w.Logf("Pod %s came before its SidecarSet was known", name)
	w.Must(w.Client.Delete(w.Ctx, p, client.GracePeriodSeconds(0)))
	w.apply(example)
	return p.UID
}

// launchInOrder starts Pods of all kinds in the order of their priorities, and one again under its old name.
func (w *world) launchInOrder() {
	defer func() {
		w.Must(client.IgnoreNotFound(w.Client.Delete(w.Ctx, &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "launch-order"}})))
	}()
	w.apply("launch-priority.yaml")
	w.watchLaunch("launch-priority", "", []string{"proxy"}, []string{"app", "exporter"})
	first := w.injected("sidecarset-launch-order.yaml", "launch-order")
	p := w.watchLaunch("launch-order", first, []string{"agent"}, []string{"app"})
	if !slices.ContainsFunc(p.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/var/log/nginx" }) {
		w.Errorf("the agent mounts %+v, want also what the app mounts", p.Spec.Containers[0].VolumeMounts)
	}
	ordered := func() *corev1.Pod {
		grace := int64(1)
		sleep := func(name string) corev1.Container {
			return corev1.Container{Name: name, Image: "busybox:1.36", Command: []string{"sleep", "100000"}}
		}
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "ordered-0", Namespace: namespace, Annotations: map[string]string{"apps.kruise.io/container-launch-priority": "Ordered"}},
			Spec:       corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{sleep("a"), sleep("b"), sleep("c")}},
		}
	}
	groups := [][]string{{"a"}, {"b"}, {"c"}}
	w.Must(w.Client.Create(w.Ctx, ordered()))
	former := w.watchLaunch("ordered-0", "", groups...)
	w.Must(w.Client.Delete(w.Ctx, former))
	w.Eventually("the name is free", func() error { return client.IgnoreAlreadyExists(w.Client.Create(w.Ctx, ordered())) })
	w.Eventually("there is another Pod of that name", func() error {
		p := ordered()
		if err := w.Client.Get(w.Ctx, client.ObjectKeyFromObject(p), p); err != nil || p.UID == former.UID {
			_ = w.Client.Create(w.Ctx, ordered()) // once the name is free
			return errors.New("there is not")
		}
		return nil
	})
	w.watchLaunch("ordered-0", former.UID, groups...)
}

// terminateSidecars lets Jobs end although sidecars run in them.
func (w *world) terminateSidecars() {
	_, err := w.Kubectl(w.Ctx, "-n", system, "patch", "deployment", "kruise-controller-manager", "--type=json", "-p",
		`[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--feature-gates=SidecarTerminator=true"}]`)
	w.Must(err)
	_, err = w.Kubectl(w.Ctx, "-n", system, "rollout", "status", "--timeout=2m", "deployment/kruise-controller-manager")
	w.Must(err)
	w.apply("job-sidecar-terminator.yaml")
	began := time.Now()
	_, err = w.Kubectl(w.Ctx, "-n", namespace, "wait", "--for=condition=complete", "--timeout=90s", "job/with-sidecar")
	w.Must(err)
	w.Logf("the Job was complete %v after it was created", time.Since(began).Round(100*time.Millisecond))
	var list v1beta1.ContainerRecreateRequestList
	w.Must(w.Client.List(w.Ctx, &list, client.InNamespace(namespace)))
	if len(list.Items) != 1 {
		w.Errorf("there are %d requests, want one", len(list.Items))
	}
	for marks, want := range map[string]corev1.PodPhase{"counted": corev1.PodFailed, "ignored": corev1.PodSucceeded} {
		env := []corev1.EnvVar{{Name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", Value: "true"}}
		if marks == "ignored" {
			env = append(env, corev1.EnvVar{Name: "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE", Value: "true"})
		}
		grace := int64(2)
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: marks, Namespace: namespace},
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{
				{Name: "main", Image: "busybox:1.36", Command: []string{"sleep", "2"}},
				{Name: "agent", Image: "busybox:1.36", Command: []string{"sh", "-c", "trap 'exit 143' TERM; while true; do sleep 1; done"}, Env: env},
			}},
		}
		w.Must(w.Client.Create(w.Ctx, p))
		created := time.Now()
		w.Eventually("a Pod whose sidecar's exit code is "+marks+" is "+string(want), func() error {
			w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(p), p))
			if !pod.IsFinished(p) {
				return fmt.Errorf("it is %s", p.Status.Phase)
			}
			return nil
		})
		if p.Status.Phase != want {
			w.Errorf("a Pod whose sidecar's exit code is %s is %s, want %s", marks, p.Status.Phase, want)
		}
		w.Eventually("nothing runs in it any more", func() error {
			w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(p), p))
			for _, status := range p.Status.ContainerStatuses {
				if status.State.Running != nil {
					return fmt.Errorf("%s does", status.Name)
				}
			}
			return nil
		})
		// A kubelet that nobody calls looks at the phase of a Pod about once a minute.
		took := time.Since(created)
		w.Logf("a Pod whose sidecar's exit code is %s took %v", marks, took.Round(100*time.Millisecond))
		if took > 30*time.Second {
			w.Errorf("a Pod whose sidecar's exit code is %s took %v until nothing ran in it, want at most 30s", marks, took)
		}
	}
}
