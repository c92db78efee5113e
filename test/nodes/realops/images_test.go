package realops

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// pull has all nodes pull an image, by a job with further fields of its spec.
func (w *world) pull(name, image, more string) *v1beta1.ImagePullJob {
	w.Helper()
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	w.Must(yaml.UnmarshalStrict([]byte("{image: \""+image+"\", "+more+"}"), &job.Spec))
	w.Must(w.Client.Create(w.Ctx, job))
	return job
}

// comesTo waits until a job says what is wanted of its nodes, in words: pulling, succeeded, failed.
func (w *world) comesTo(job *v1beta1.ImagePullJob, want string) {
	w.Helper()
	w.Eventually("job "+job.Name+" says "+want, func() error {
		w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(job), job))
		s := job.Status
		if got := fmt.Sprintf("%d pulling, %d succeeded, %d failed", s.Active, s.Succeeded, s.Failed); got != want {
			return fmt.Errorf("it says %+v", s)
		}
		return nil
	})
}

// messages returns those of the events of a reason about an object of the namespace.
func (w *world) messages(name, reason string) string {
	w.Helper()
	out, err := w.Kubectl(
		w.Ctx, "-n", namespace, "get", "events", "--field-selector=involvedObject.name="+name+",reason="+reason, "-o",
		"jsonpath={.items[*].message}",
	)
	w.Must(err)
	return out
}

// servers is a CloneSet of one Pod that updates in place.
func (w *world) servers(name, spec string) *v1beta1.CloneSet {
	w.Helper()
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	w.Must(yaml.UnmarshalStrict([]byte(strings.ReplaceAll(`
replicas: 1
selector: {matchLabels: {app: NAME}}
updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}
template:
  metadata: {labels: {app: NAME}, annotations: {tier: gold}}
  spec: `+spec, "NAME", name)), &set.Spec))
	w.Must(w.Client.Create(w.Ctx, set))
	return set
}

// updated waits until the Pod of a CloneSet is updated and ready, and returns it.
func (w *world) updated(set *v1beta1.CloneSet) *corev1.Pod {
	w.Helper()
	w.Eventually("CloneSet "+set.Name+" is updated", func() error {
		w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(set), set))
		if s := set.Status; s.ObservedGeneration != set.Generation || s.UpdatedReadyReplicas != 1 || s.Replicas != 1 {
			return fmt.Errorf("its status is %+v", s)
		}
		return nil
	})
	var list corev1.PodList
	w.Must(w.Client.List(w.Ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": set.Name}))
	if len(list.Items) != 1 {
		w.Fatalf("there are %d Pods", len(list.Items))
	}
	return &list.Items[0]
}

func (w *world) edit(set *v1beta1.CloneSet, change func(*v1beta1.CloneSet)) {
	w.Helper()
	before := set.DeepCopy()
	change(set)
	w.Must(w.Client.Patch(w.Ctx, set, client.MergeFrom(before)))
}

// pullAhead: once a job has brought the image, the kubelet finds it there.
func (w *world) pullAhead() {
	set := w.servers(
		"ahead", `{terminationGracePeriodSeconds: 1, containers: [{name: web, image: "nginx:alpine", imagePullPolicy: IfNotPresent}]}`,
	)
	before := w.updated(set)
	w.comesTo(w.pull("ahead", "nginx:1.26", `podSelector: {matchLabels: {app: ahead}}`), "0 pulling, 1 succeeded, 0 failed")
	w.edit(set, func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = "nginx:1.26" })
	after := w.updated(set)
	if after.UID != before.UID || after.Status.PodIP != before.Status.PodIP || pod.ContainerStatus(after, "web").RestartCount != 1 {
		w.Errorf("the Pod was %s, is %s: %+v", before.UID, after.UID, after.Status.ContainerStatuses)
	}
	if pulling := w.messages(after.Name, "Pulling"); strings.Contains(pulling, "nginx:1.26") {
		w.Errorf("the kubelet pulled: %s", pulling)
	}
	if pulled := w.messages(after.Name, "Pulled"); !strings.Contains(pulled, `"nginx:1.26" already present`) {
		w.Errorf("of its images the kubelet says: %s", pulled)
	}
}

// refuse: the job says of an image that there is not where it failed, and the node why.
func (w *world) refuse() {
	job := w.pull("refused", "nginx:no-such", `pullPolicy: {backoffLimit: 1, timeoutSeconds: 20}`)
	w.comesTo(job, "0 pulling, 0 succeeded, 1 failed")
	if s := job.Status; s.CompletionTime == nil || !slices.Equal(s.FailedNodes, []string{"real-0"}) || s.Message != "job has completed" {
		w.Errorf("the job says %+v", s)
	}
	if said := w.says("nginx", "no-such"); !strings.Contains(said.Message, "nginx:no-such: not found") {
		w.Errorf("the node says %+v, want the words of the registry", said)
	}
	w.Eventually("an event of the job tells why", func() error {
		if got := w.messages(job.Name, "PullImageFailed"); !strings.Contains(got, "nginx:no-such: not found") {
			return fmt.Errorf("the events say %q", got)
		}
		return nil
	})
}

// says returns what the node says of an image.
func (w *world) says(repository, tag string) v1beta1.ImageTagStatus {
	w.Helper()
	n := &v1beta1.NodeImage{}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Name: "real-0"}, n))
	for _, s := range n.Status.ImageStatuses[repository].Tags {
		if s.Tag == tag {
			return s
		}
	}
	return v1beta1.ImageTagStatus{}
}

// interrupt: the registry stands still in the middle of a pull, in which the daemon is killed, and then the container runtime. The job says all the
// time that the node pulls, and that it has succeeded when all are back: nothing is lost, and nothing asked for twice.
func (w *world) interrupt() {
	process := func(component string) int {
		id, err := w.ProcessOf(w.Ctx, component)
		w.Must(err)
		return id
	}
	registry := process("registry")
	w.Must(syscall.Kill(registry, syscall.SIGSTOP))
	w.Cleanup(func() { _ = syscall.Kill(registry, syscall.SIGCONT) }) // an error means that it has ended
	job := w.pull("interrupted", "nginx:1.25", `pullPolicy: {backoffLimit: 0, timeoutSeconds: 120}`)
	w.comesTo(job, "1 pulling, 0 succeeded, 0 failed")
	w.Eventually("the node pulls", func() error {
		if s := w.says("nginx", "1.25"); s.Phase != v1beta1.ImagePhasePulling {
			return fmt.Errorf("it says %+v", s)
		}
		return nil
	})
	begun := w.says("nginx", "1.25")
	w.restartDaemon()
	time.Sleep(2 * time.Second) // it pulls again
	w.comesTo(job, "1 pulling, 0 succeeded, 0 failed")
	w.Must(syscall.Kill(process("containerd@real-0"), syscall.SIGKILL))
	time.Sleep(2 * time.Second)
	w.comesTo(job, "1 pulling, 0 succeeded, 0 failed")
	w.Must(syscall.Kill(registry, syscall.SIGCONT))
	_, err := w.Local(w.Ctx, "up")
	w.Must(err)
	w.comesTo(job, "0 pulling, 1 succeeded, 0 failed")
	done := w.says("nginx", "1.25")
	if !done.StartTime.Equal(begun.StartTime) || done.Version != begun.Version || done.Message != "" {
		w.Errorf("the pull began as %+v and ended as %+v, want one round and no complaint", begun, done)
	}
	if failed := w.messages(job.Name, "PullImageFailed"); failed != "" {
		w.Errorf("the pull was said to have failed: %s", failed)
	}
}

// environment: a container whose environment comes from an annotation starts anew once its hook has run, and its sibling goes on.
func (w *world) environment() {
	set := w.servers("env", `
    terminationGracePeriodSeconds: 12
    volumes: [{name: log, emptyDir: {}}]
    containers:
    - name: a
      image: busybox:1.36
      imagePullPolicy: IfNotPresent
      env: [{name: TIER, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['tier']"}}}]
      command: [sh, -c, "trap 'echo a told to end >> /log/diary; exit 0' TERM; echo a starts with $TIER >> /log/diary; while true; do sleep 0.2; done"]
      lifecycle: {preStop: {exec: {command: [sh, -c, "echo a hook begins >> /log/diary; sleep 2; echo a hook ends >> /log/diary"]}}}
      volumeMounts: [{name: log, mountPath: /log}]
    - name: sibling
      image: busybox:1.36
      imagePullPolicy: IfNotPresent
      command: [sh, -c, "trap 'echo sibling told to end >> /log/diary; exit 0' TERM; while true; do sleep 0.2; done"]
      volumeMounts: [{name: log, mountPath: /log}]
`)
	before := w.updated(set)
	w.edit(set, func(set *v1beta1.CloneSet) { set.Spec.Template.Annotations["tier"] = "silver" })
	after := w.updated(set)
	if after.UID != before.UID || pod.ContainerStatus(after, "a").RestartCount != 1 || pod.ContainerStatus(after, "sibling").RestartCount != 0 {
		w.Errorf("the Pod was %s, is %s: %+v", before.UID, after.UID, after.Status.ContainerStatuses)
	}
	if got, want := w.read(after), "a starts with gold, a hook begins, a hook ends, a told to end, a starts with silver"; got != want {
		w.Errorf("what happened is %q, want %q", got, want)
	}
}
