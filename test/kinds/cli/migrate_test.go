package cli

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// TestMigrateDeployment moves the Pods of a Deployment to a CloneSet, is killed on the way, and goes on: never is a Pod fewer available.
func TestMigrateDeployment(t *testing.T) {
	e := newEnv(t)
	e.Make(replicated("apps/v1", "Deployment", "replicas: 4"))
	e.done("deployment/web")
	e.Make(`
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
`)
	e.ends(1, "HorizontalPodAutoscaler web scales deployment/web", "migrate", "cloneset", "--from", "deployment/web")
	e.Must(e.Delete(e.Ctx, e.Manifest("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}}")))
	e.ends(1, "give a StatefulSet of Kubernetes", "migrate", "statefulset", "--from", "deployment/web")
	e.ends(1, "no Pod could move", "migrate", "cloneset", "--from", "deployment/web", "--max-surge", "0")
	e.ok("4 Pods move from deployment/web to cloneset/web: never more than 5 Pods are there on the way, and never fewer than 4", "migrate", "cloneset", "--from", "deployment/web", "--dry-run")
	e.ends(1, "not found", "status", "clone/web")

	watched := e.watchAvailable()
	killed := exec.CommandContext(e.Ctx, e.binary, "--kubeconfig", e.Kubeconfig, "-n", e.Namespace, "--cache-dir", e.cache, "migrate", "cloneset", "--from", "deployment/web")
	e.Must(killed.Start())
	e.Eventually("a Pod has moved", func() error {
		var set v1beta1.CloneSet
		if err := e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "web"}, &set); err != nil {
			return err
		}
		if set.Status.AvailableReplicas < 1 {
			return fmt.Errorf("the status is %+v", set.Status)
		}
		return nil
	})
	e.Must(killed.Process.Kill())
	_ = killed.Wait() // it was killed
	e.ends(3, "the same command goes on", "migrate", "cloneset", "--from", "deployment/web", "--timeout", "1s")
	e.ok("0 Pods in deployment/web, 4 in cloneset/web", "migrate", "CloneSet", "--from", "Deployment", "--src-name", "web", "--timeout-seconds", "120")
	if least, most := watched(); least < 4 || most > 5 {
		t.Errorf("on the way %d to %d Pods were there", least, most)
	}
	var set v1beta1.CloneSet
	e.Read("web", &set)
	var from appsv1.Deployment
	e.Read("web", &from)
	if *set.Spec.Replicas != 4 || set.Status.AvailableReplicas != 4 || *from.Spec.Replicas != 0 || set.Annotations[keys.Migration] != "" {
		t.Errorf("in the end they are %+v and %+v", set, from)
	}
	e.ok("in service", "status", "clone/web", "--timeout", "1m")
}

// watchAvailable counts the Pods that are available, and those that are there to stay, until it is asked what were the least and the most.
func (e *env) watchAvailable() func() (least, most int) {
	stop, least, most := make(chan struct{}), 1000, 0
	var done sync.WaitGroup
	done.Go(func() {
		for {
			available, there := 0, 0
			for _, p := range e.Pods() {
				if p.DeletionTimestamp == nil {
					there++
					if pod.IsReady(&p) {
						available++
					}
				}
			}
			least, most = min(least, available), max(most, there)
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return func() (int, int) {
		close(stop)
		done.Wait()
		return least, most
	}
}

// TestMigratePart makes a CloneSet of another name first, and moves some Pods then.
func TestMigratePart(t *testing.T) {
	e := newEnv(t)
	e.Make(replicated("apps/v1", "Deployment", "replicas: 2"))
	e.done("deployment/web")
	e.ok("cloneset/new created", "migrate", "cloneset", "--from", "deployment/web", "--dst-name", "new", "--create")
	e.ok("1 in cloneset/new", "migrate", "cloneset", "--from", "deployment/web", "--dst-name", "new", "--replicas", "1", "--timeout", "2m")
	e.ends(1, "has only 1", "migrate", "cloneset", "--from", "deployment/web", "--dst-name", "new", "--replicas", "2")
	e.ok("cloneset/copy created", "migrate", "cloneset", "--from", "deployment/web", "--dst-name", "copy", "--copy")
	var set v1beta1.CloneSet
	e.Read("copy", &set)
	if *set.Spec.Replicas != 1 {
		t.Errorf("the copy has %d replicas", *set.Spec.Replicas)
	}
}

// TestMigrateInPlace has a StatefulSet and a DaemonSet of Kruise take over the Pods of those of Kubernetes.
func TestMigrateInPlace(t *testing.T) {
	for name, tc := range map[string]struct{ to, arg, from, spec string }{
		"StatefulSet": {"statefulset", "asts/web", "statefulset/web", "replicas: 2\n  serviceName: web"},
		"DaemonSet":   {"ads", "ads/web", "daemonset/web", "minReadySeconds: 0"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Make(replicated("apps/v1", name, tc.spec))
			e.done(tc.from)
			before := slices.Sorted(slices.Values(e.uids()))
			e.ok("which adopts them: none restarts", "migrate", tc.to, "--from", tc.from, "--dry-run")
			e.done(tc.from)
			e.ok(tc.arg+" created", "migrate", tc.to, "--from", tc.from)
			e.done(tc.arg)
			if after := slices.Sorted(slices.Values(e.uids())); !slices.Equal(before, after) {
				t.Errorf("the Pods were %v and are %v", before, after)
			}
			if !slices.ContainsFunc(e.Pods(), func(p corev1.Pod) bool {
				return len(p.OwnerReferences) == 1 && p.OwnerReferences[0].APIVersion == v1beta1.GroupVersion.String()
			}) {
				encoded, _ := json.Marshal(e.Pods()[0].OwnerReferences)
				t.Errorf("a Pod is owned by %s", encoded)
			}
			e.ends(1, "not found", "status", tc.from)
		})
	}
}
