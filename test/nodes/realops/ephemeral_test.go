package realops

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// answering is a Pod with a volume in which its container writes a number.
const answering = `
metadata: {namespace: real, name: NAME, labels: {app: answering}}
spec:
  terminationGracePeriodSeconds: 0
  volumes: [{name: data, emptyDir: {}}]
  containers:
  - name: app
    image: busybox:1.36
    command: [sh, -c, "echo CODE > /data/code; touch /data/written; sleep 100000"]
    volumeMounts: [{name: data, mountPath: /data}]
    readinessProbe: {exec: {command: [cat, /data/written]}, periodSeconds: 1}
`

// asking is a job whose container exits with that number, if it sees the process of its target and the variable that it was given.
const asking = `
metadata: {namespace: real, name: NAME}
spec:
  selector: {matchLabels: {app: answering}}
  template:
    ephemeralContainers:
    - name: NAME
      image: busybox:1.36
      targetContainerName: app
      command: [sh, -c, "test -n \"$KRUISE_EJOB_ID\" || exit 101; grep -q 's[l]eep' /proc/1/cmdline || exit 102; exit $(cat /data/code)"]
      volumeMounts: [{name: data, mountPath: /data}]
`

// look has a job look into two Pods, one of which gives a bad answer, and another job into the good one that is left.
func (w *world) look() {
	for name, code := range map[string]string{"good": "0", "bad": "3"} {
		p := &corev1.Pod{}
		w.Must(yaml.UnmarshalStrict([]byte(strings.NewReplacer("NAME", name, "CODE", code).Replace(answering)), p))
		w.Must(w.Client.Create(w.Ctx, p))
	}
	for _, name := range []string{"good", "bad"} {
		w.Eventually(name+" has written its number", func() error {
			p := &corev1.Pod{}
			w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, p))
			if !pod.IsReady(p) {
				return fmt.Errorf("it is %+v", p.Status)
			}
			return nil
		})
	}
	w.sends("first", "Failed, succeeded 1, failed 1: 1 of 2 Pods failed: bad (first exited with code 3)")
	bad := &corev1.Pod{}
	w.Must(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: namespace, Name: "bad"}, bad))
	if s := bad.Status.ContainerStatuses[0]; s.RestartCount != 0 || s.State.Running == nil {
		w.Errorf("the container of the Pod is %+v", s)
	}
	w.Must(w.Client.Delete(w.Ctx, bad))
	w.sends("second", "Succeeded, succeeded 1, failed 0: 1 Pod succeeded")
}

func (w *world) sends(name, want string) {
	w.Helper()
	job := &v1alpha1.EphemeralJob{}
	w.Must(yaml.UnmarshalStrict([]byte(strings.ReplaceAll(asking, "NAME", name)), job))
	w.Must(w.Client.Create(w.Ctx, job))
	w.Eventually("job "+name+" is over", func() error {
		w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(job), job))
		if job.Status.CompletionTime == nil {
			return fmt.Errorf("it is %+v", job.Status)
		}
		return nil
	})
	s := job.Status
	if got := fmt.Sprintf("%s, succeeded %d, failed %d: %s", s.Phase, s.Succeeded, s.Failed, s.Conditions[1].Message); got != want {
		w.Errorf("it is over with %q, want %q", got, want)
	}
}
