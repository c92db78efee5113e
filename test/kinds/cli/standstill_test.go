package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// standstill is a situation in which something does not go on.
type standstill struct {
	// begin brings it about.
	begin func(*env)
	// of is what is explained, and image that of the Pod of it that is; empty for the whole.
	of, image string
	// code is in the first line, with says; free is what is said to free it.
	code, says, free string
}

// kruiseSet returns the manifest of a CloneSet.
func kruiseSet(spec string) string { return replicated("apps.kruise.io/v1beta1", "CloneSet", spec) }

// running makes a workload and waits until it is done.
func running(manifest, of string) func(*env) {
	return func(e *env) {
		e.Make(manifest)
		e.done(of)
	}
}

// updated is running with another image.
func updated(manifest, of, image string) func(*env) {
	return func(e *env) {
		running(manifest, of)(e)
		e.ok("image updated", "set", "image", of, "main="+image)
	}
}

// made makes objects, and waits for nothing.
func made(manifests ...string) func(*env) {
	return func(e *env) {
		for _, m := range manifests {
			e.Make(m)
		}
	}
}

const noPods = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {pods: 0}}}"

// full makes a quota that lets no Pod be, and then a workload.
func full(manifest string) func(*env) {
	return func(e *env) {
		e.Make(noPods)
		e.Eventually("the quota is in force", func() error {
			quota := e.Manifest("{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}}")
			e.Read("none", quota)
			if quota.Object["status"] == nil {
				return errors.New("it has no status")
			}
			return nil
		})
		e.Make(manifest)
	}
}

// inPlace is a strategy of CloneSets.
const inPlace = "replicas: 1\n  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}"

// TestStandstill brings about all that a workload may stand still for, and has the first lines name the cause and what frees it.
func TestStandstill(t *testing.T) {
	for _, situations := range []map[string]standstill{ordered(), podsOutOfService(), refusals(), otherKinds(), releases()} {
		for name, s := range situations {
			t.Run(name, func(t *testing.T) {
				e := newEnv(t)
				s.begin(e)
				e.standsStill(s)
			})
		}
	}
}

// standsStill waits until a situation is explained.
func (e *env) standsStill(s standstill) {
	e.Helper()
	e.Eventually("the cause is "+s.code, func() error {
		args := []string{"explain", strings.ReplaceAll(s.of, "NAMESPACE", e.Namespace)}
		if s.image != "" {
			args = append(args, e.podWith(s.image))
		}
		r := e.run(args...)
		cause, free, _ := strings.Cut(r.out, "\nTo free it: ")
		flat := strings.Join(strings.Fields(cause), " ")
		switch first, _, _ := strings.Cut(r.out, "\n"); {
		case r.code != 0 || !strings.Contains(first, ": "+s.code):
			return errors.New(r.String())
		case !strings.Contains(flat, s.says):
			return fmt.Errorf("%s\nwant a cause that says %q", r, s.says)
		case !strings.Contains(strings.Join(strings.Fields(free), " "), s.free):
			return fmt.Errorf("%s\nwant it freed by %q", r, s.free)
		}
		return nil
	})
}

// podWith returns the name of a Pod with an image.
func (e *env) podWith(image string) string {
	for _, p := range e.Pods() {
		if p.Spec.Containers[0].Image == image {
			return p.Name
		}
	}
	return "none"
}

// editPod changes the Pod with an image.
func (e *env) editPod(image string, change func(*corev1.Pod)) {
	e.Helper()
	scene.Edit(e.Env, e.podWith(image), &corev1.Pod{}, change)
}

// ordered are situations that a person has ordered.
func ordered() map[string]standstill {
	held := "replicas: 2\n  updateStrategy: {rollingUpdate: {partition: 1, maxUnavailable: 1}}"
	return map[string]standstill{
		"a pause":                       {updated(kruiseSet("replicas: 1\n  updateStrategy: {rollingUpdate: {paused: true}}"), "clone/web", "web:v2"), "clone/web", "", "HeldByPause", "paused", "kubectl kruise resume cloneset/web"},
		"a partition":                   {updated(kruiseSet(held), "clone/web", "web:v2"), "clone/web", "", "HeldByPartition", "1 Pods stay", "lower the partition of cloneset/web"},
		"a partition, by a Pod":         {updated(kruiseSet(held), "clone/web", "web:v2"), "clone/web", "web:v1", "HeldByPartition", "partition", "plan cloneset/web --set partition=0"},
		"updates on delete":             {updated(kruiseSet("replicas: 1\n  updateStrategy: {type: OnDelete}"), "clone/web", "web:v2"), "clone/web", "", "OnDelete", "OnDelete", "RollingUpdate"},
		"updates on delete, Kubernetes": {updated(replicated("apps/v1", "StatefulSet", "replicas: 1\n  serviceName: web\n  updateStrategy: {type: OnDelete}"), "sts/web", "web:v2"), "sts/web", "", "OnDelete", "OnDelete", "RollingUpdate"},
		"a Deployment that is paused": {func(e *env) {
			running(replicated("apps/v1", "Deployment", "replicas: 1"), "deployment/web")(e)
			e.ok("paused", "pause", "deployment/web")
			e.ok("image updated", "set", "image", "deployment/web", "main=web:v2")
		}, "deployment/web", "", "HeldByPause", "paused", "kubectl kruise resume deployment/web"},
		"no replicas":                     {running(kruiseSet("replicas: 0"), "clone/web"), "clone/web", "", "Nothing", "", ""},
		"a DaemonSet at its partition":    {updated(replicated("apps.kruise.io/v1beta1", "DaemonSet", "updateStrategy: {rollingUpdate: {partition: 2}}"), "ads/web", "web:v2"), "ads/web", "", "HeldByPartition", "2 Pods stay", "partition of ads/web"},
		"in place only, and it can't be":  {restarted(kruiseSet("replicas: 1\n  updateStrategy: {rollingUpdate: {maxUnavailable: 1}}")), "clone/web", "", "InPlaceRefused", "InPlaceOnly", "podUpdatePolicy InPlaceIfPossible"},
		"a hook before an update":         {updated(kruiseSet(inPlace+"\n  lifecycle: {inPlaceUpdate: {labelsHandler: {app: web}}}"), "clone/web", "web:v2"), "clone/web", "", "WaitLifecycleHook", "inPlaceUpdate hook", "label app=web off Pod"},
		"a hook before a deletion":        {scaled(kruiseSet("replicas: 1\n  lifecycle: {preDelete: {labelsHandler: {app: web}}}")), "clone/web", "", "WaitLifecycleHook", "preDelete hook", "label app=web off Pod"},
		"a workload with a finalizer":     {deleted(kruiseSet("replicas: 1")), "clone/web", "", "WaitDeletion", "example.com/keep", "take them off cloneset/web"},
		"a grace period":                  {updated(kruiseSet("replicas: 1\n  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, inPlaceUpdateStrategy: {gracePeriodSeconds: 600}}}"), "clone/web", "web:v2"), "clone/web", "", "WaitGrace", "gracePeriodSeconds", "ends by itself"},
		"time that a Pod has to be ready": {made(kruiseSet("replicas: 1\n  minReadySeconds: 600")), "clone/web", "", "WaitMinReady", "minReadySeconds 600", "ends by itself"},
	}
}

// restarted changes a CloneSet such that its Pods can't be updated in place, and then wants just that: both at once would be refused.
func restarted(manifest string) func(*env) {
	return func(e *env) {
		running(manifest, "clone/web")(e)
		scene.Edit(e.Env, "web", &v1beta1.CloneSet{}, func(s *v1beta1.CloneSet) {
			s.Spec.UpdateStrategy.RollingUpdate.Paused = true
			s.Spec.Template.Spec.Containers[0].Command = []string{"serve"}
		})
		scene.Edit(e.Env, "web", &v1beta1.CloneSet{}, func(s *v1beta1.CloneSet) {
			s.Spec.UpdateStrategy.RollingUpdate.Paused = false
			s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceOnlyCloneSetPodUpdatePolicyType
		})
	}
}

// scaled takes the Pod of a CloneSet away.
func scaled(manifest string) func(*env) {
	return func(e *env) {
		running(manifest, "clone/web")(e)
		e.ok("scaled down to 0", "scaledown", "web", "--pods", e.podWith("web:v1"))
	}
}

// deleted deletes a CloneSet that has a finalizer.
func deleted(manifest string) func(*env) {
	return func(e *env) {
		e.Make(strings.Replace(manifest, "{name: web}", "{name: web, finalizers: [example.com/keep]}", 1))
		e.Must(e.Client.Delete(e.Ctx, e.Manifest("{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web}}")))
	}
}
