package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCloneSet goes through the life of a CloneSet with nothing but the command line.
func TestCloneSet(t *testing.T) {
	e := newEnv(t)
	e.Make(replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 3\n  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1}}"))
	e.done("cloneset/web")
	before := slices.Sorted(slices.Values(e.names()))

	e.ok("image updated: main=web:v2 (dry run: nothing was written)", "set", "image", "clone/web", "main=web:v2", "--dry-run")
	e.allRun("web:v1", 3)
	e.ok("image updated: main=web:v2", "set", "image", "cloneset", "web", "main=web:v2")
	e.ok("3/3 updated: all Pods are updated and in service", "status", "clonesets.v1alpha1.apps.kruise.io/web", "--timeout", "2m")
	e.allRun("web:v2", 3)
	if after := slices.Sorted(slices.Values(e.names())); !slices.Equal(before, after) {
		t.Errorf("an update in place has replaced Pods: %v, and then %v", before, after)
	}
	e.ok("has these images already", "set", "image", "clone/web", "main=web:v2")

	e.ok("main=web:v1", "history", "clone/web")
	e.ok("image: web:v1", "history", "clone/web", "--revision", "1")
	e.ok("Pods can be updated in place (main web:v1 -> web:v2)", "diff", "clone/web")
	var entries []struct {
		Revision int64
		Pods     *int
		Images   []string
	}
	e.encoded(&entries, "history", "clone/web")
	if len(entries) != 2 || entries[0].Revision != 2 || *entries[0].Pods != 3 || *entries[1].Pods != 0 || entries[1].Images[0] != "main=web:v1" {
		t.Errorf("the history is %+v", entries)
	}

	e.ok("rolled back to revision 1 (dry run", "undo", "clone/web", "--dry-run")
	e.ok("- web:v2", "undo", "clone/web")
	e.done("clone/web")
	e.allRun("web:v1", 3)
	e.ok("rolled back to revision 2", "rollout", "undo", "clone/web", "--to-revision", "2")
	e.done("clone/web")
	e.ends(1, "there is no revision 9", "undo", "clone/web", "--to-revision", "9")

	e.ends(1, "no container would restart", "restart", "clone/web")
	chosen := e.names()[0]
	e.ok("scaled down to 2", "scaledown", "web", "--pods", chosen)
	e.done("clone/web")
	if now := e.names(); len(now) != 2 || slices.Contains(now, chosen) {
		t.Errorf("%s was to go, and there are %v", chosen, now)
	}
	e.ends(1, "has no Pod", "scaledown", "cloneset/web", "--pods", "web-none")
}

// TestPaused checks what a pipeline sees of a pause.
func TestPaused(t *testing.T) {
	e := newEnv(t)
	e.Make(replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 2"))
	e.done("clone/web")
	e.ok("cloneset/web paused (dry run", "pause", "clone/web", "--dry-run=server")
	e.ok("cloneset/web paused", "pause", "clone/web")
	e.ok("cloneset/web is paused already", "rollout", "pause", "clone/web")
	e.ok("image updated", "set", "image", "clone/web", "*=web:v2")
	e.ends(2, "paused: 2 Pods are not updated", "status", "clone/web", "--timeout", "1m")
	var standing struct {
		Phase, Name, Next string
		Updated, Total    int
	}
	e.encoded(&standing, "status", "clone/web")
	if standing.Phase != "Waiting" || standing.Name != "web" || standing.Total != 2 || standing.Next != "resume it" {
		t.Errorf("it is %+v", standing)
	}
	e.ends(3, "not done after", "status", "clone/web", "--through-pauses", "--timeout", "3s")
	e.ok("cloneset/web resumed", "resume", "clone/web")
	e.ok("is not paused", "resume", "clone", "web")
	e.done("clone/web")
	e.allRun("web:v2", 2)
}

// TestFailures checks the exit codes of what goes wrong.
func TestFailures(t *testing.T) {
	e := newEnv(t)
	e.ends(1, "not found", "status", "clone/web")
	e.ends(1, `no resource "nothing"`, "status", "nothing/web")
	e.ends(1, "is no kind that this program knows", "status", "pod/web")
	e.ends(1, "no object is named", "status")
	e.ends(1, "-o table: use json or yaml", "status", "clone/web", "-o", "table")
	e.ends(1, "unknown command", "statos")

	e.Make(replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 1\n  progressDeadlineSeconds: 10"))
	e.eventually(0, "all Pods are updated", "status", "clone/web", "--timeout", "2m") // past the deadline on a slow machine
	e.ends(1, `has no container "app": it has [main]`, "set", "image", "clone/web", "app=web:v2")
	e.ends(1, "there is no earlier revision", "undo", "clone/web")
	e.ends(1, "is not released by a Rollout", "approve", "clone/web")
	e.ends(1, "no Pods are named", "scaledown", "clone/web")

	e.ok("image updated", "set", "image", "clone/web", "main=web:fail-pull")
	e.ends(3, "not done after 1s", "status", "clone/web", "--timeout", "1s")
	e.ends(1, "past its deadline", "status", "clone/web", "--timeout", "1m")
	e.ends(1, "past its deadline", "rollout", "status", "clone/web", "--watch=false")
	e.ok("rolled back", "undo", "clone/web", "-y")
	e.eventually(0, "all Pods are updated", "status", "clone/web", "--timeout", "2m")
	e.allRun("web:v1", 1)

	e.Must(e.Delete(e.Ctx, e.Manifest("{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web}}")))
	e.eventually(1, "not found", "status", "clone/web")
}

// TestKinds checks what all workloads have in common, with one of each kind.
func TestKinds(t *testing.T) {
	rolling := "replicas: 2"
	for name, tc := range map[string]struct{ arg, manifest string }{
		"StatefulSet of Kruise":     {"asts/web", replicated("apps.kruise.io/v1beta1", "StatefulSet", rolling+"\n  serviceName: web")},
		"DaemonSet of Kruise":       {"ads/web", replicated("apps.kruise.io/v1beta1", "DaemonSet", "updateStrategy: {rollingUpdate: {maxUnavailable: 3}}")},
		"Deployment":                {"deployment/web", replicated("apps/v1", "Deployment", rolling)},
		"StatefulSet of Kubernetes": {"statefulset/web", replicated("apps/v1", "StatefulSet", rolling+"\n  serviceName: web")},
		"DaemonSet of Kubernetes":   {"daemonset/web", replicated("apps/v1", "DaemonSet", "updateStrategy: {rollingUpdate: {maxUnavailable: 3}}")},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Make(tc.manifest)
			e.done(tc.arg)
			n := len(e.names())
			e.ok("image updated", "set", "image", tc.arg, "main=web:v2")
			e.done(tc.arg)
			e.allRun("web:v2", n)
			e.ok("- web:v1", "diff", tc.arg)
			e.ok("rolled back to revision 1", "undo", tc.arg)
			e.done(tc.arg)
			e.allRun("web:v1", n)
			before := slices.Sorted(slices.Values(e.uids()))
			e.ok("restarted", "restart", tc.arg)
			e.done(tc.arg)
			for _, uid := range e.uids() {
				if slices.Contains(before, uid) {
					t.Errorf("Pod %s was not recreated by a restart", uid)
				}
			}
		})
	}
}

// TestPlan compares what was foretold with what the manager then does.
func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct{ arg, manifest, image string }{
		"CloneSet by weight, in place": {"clone/web", replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 5\n  minReadySeconds: 2\n  updateStrategy: "+
			"{rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1, partition: 1}}"), "web:v2"},
		"StatefulSet, in place": {"asts/web", replicated("apps.kruise.io/v1beta1", "StatefulSet", "replicas: 3\n  minReadySeconds: 2\n  serviceName: web\n  "+
			"updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}"), "web:v2"},
		"DaemonSet, in place": {"ads/web", replicated("apps.kruise.io/v1beta1", "DaemonSet",
			"minReadySeconds: 2\n  updateStrategy: {rollingUpdate: {rollingUpdateType: InPlaceIfPossible, maxUnavailable: 1}}"), "web:v2"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Make(tc.manifest)
			e.done(tc.arg)
			e.ok("No Pod is updated", "plan", tc.arg)
			e.ends(2, "paused", "plan", tc.arg, "--set", "paused=true", "--set", "image=main="+tc.image)
			e.ends(1, "there is no field", "plan", tc.arg, "--set", "size=2")
			var foretold struct{ Steps []struct{ Verb, Pod string } }
			e.encoded(&foretold, "plan", tc.arg, "--set", "image=main="+tc.image)
			if len(foretold.Steps) < 3 {
				t.Fatalf("the plan is %+v", foretold)
			}
			e.ok("image updated", "set", "image", tc.arg, "main="+tc.image)
			e.done(tc.arg)
			updated := e.inOrder()
			var wanted []string
			for _, s := range foretold.Steps {
				wanted = append(wanted, s.Pod)
			}
			if !slices.Equal(wanted, updated) {
				t.Errorf("foretold was %v, and the manager updated %v", wanted, updated)
			}
		})
	}
}

// TestPlanOfAFile plans what a file says, in either version, and refuses one about something else.
func TestPlanOfAFile(t *testing.T) {
	e := newEnv(t)
	manifest := replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 2")
	e.Make(manifest)
	e.done("clone/web")
	file := filepath.Join(e.TempDir(), "web.yaml")
	write := func(text string) { e.Must(os.WriteFile(file, []byte(text), 0o600)) }
	write(strings.NewReplacer("web:v1", "web:v2", "v1beta1", "v1alpha1").Replace(manifest))
	e.ok("RECREATE", "plan", "clone/web", "-f", file)
	write(strings.ReplaceAll(manifest, "name: web}", "name: other}"))
	e.ends(1, "holds no CloneSet", "plan", "clone/web", "-f", file)
	e.allRun("web:v1", 2)
	e.Make(replicated("apps/v1", "Deployment", "replicas: 1"))
	e.ends(1, "there is no forecast for Deployment", "plan", "deployment/web", "--set", "partition=1")
	e.ends(1, "forbidden", "plan", "clone/web", "--as", "nobody")
	e.ends(1, "holds no CloneSet", "plan", "clone/web", "-f", os.DevNull)
}

// TestExplain checks that the first line names the cause.
func TestExplain(t *testing.T) {
	t.Run("states of a rollout", func(t *testing.T) {
		e := newEnv(t)
		e.Make(replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 2\n  updateStrategy: {rollingUpdate: {partition: 1, maxUnavailable: 1}}"))
		e.done("clone/web")
		e.cause("Nothing", "clone/web")
		e.ok("paused", "pause", "clone/web")
		e.ok("image updated", "set", "image", "clone/web", "main=web:fail-pull")
		e.cause("HeldByPause", "clone/web")
		e.ok("resumed", "resume", "clone/web")
		e.cause("WaitImagePull", "clone/web")
		for _, p := range e.Pods() {
			if p.DeletionTimestamp == nil && p.Spec.Containers[0].Image == "web:v1" {
				e.cause("HeldByPartition", "clone/web", p.Name)
				e.cause("HeldByPartition", "pod/"+p.Name)
			}
		}
		e.ends(1, `has no Pod "none"`, "explain", "clone/web", "none")
		e.ok("", "set", "image", "clone/web", "main=web:v3")
		e.done("clone/web")
		e.cause("HeldByPartition", "clone/web")
		var encoded struct{ Cause struct{ Code, Free string } }
		e.encoded(&encoded, "explain", "clone/web")
		if encoded.Cause.Code != "HeldByPartition" || encoded.Cause.Free == "" {
			t.Errorf("it is %+v", encoded)
		}
	})
	t.Run("a hook", func(t *testing.T) {
		e := newEnv(t)
		e.Make(replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 1\n  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}\n"+
			"  lifecycle: {inPlaceUpdate: {labelsHandler: {app: web}}}"))
		e.done("clone/web")
		e.ok("image updated", "set", "image", "clone/web", "main=web:v2")
		e.cause("WaitLifecycleHook", "clone/web")
	})
	t.Run("no room on any node", func(t *testing.T) {
		e := newEnv(t)
		e.Make(strings.Replace(replicated("apps.kruise.io/v1beta1", "StatefulSet", "replicas: 1\n  serviceName: web"),
			"spec: {containers", "spec: {nodeSelector: {no: such}, containers", 1))
		e.cause("WaitSchedule", "asts/web")
	})
	t.Run("a quota", func(t *testing.T) {
		e := newEnv(t)
		e.Make("{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {pods: 0}}}")
		e.Eventually("the quota is in force", func() error {
			quota := e.Manifest("{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}}")
			e.Read("none", quota)
			if quota.Object["status"] == nil {
				return errors.New("it has no status")
			}
			return nil
		})
		e.Make(replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 1"))
		e.cause("QuotaExceeded", "clone/web")
	})
	t.Run("a Rollout", func(t *testing.T) {
		e := newEnv(t)
		e.released()
		e.cause("Nothing", "rollout/demo")
		e.ok("image updated", "set", "image", "clone/web", "main=web:v2")
		e.cause("WaitApproval", "rollout/demo")
		e.cause("HeldByRollout", "clone/web")
	})
	t.Run("a Deployment", func(t *testing.T) {
		e := newEnv(t)
		e.Make(strings.Replace(replicated("apps/v1", "Deployment", "replicas: 1"), "web:v1", "web:crash", 1))
		e.cause("ContainerBroken", "deployment/web")
		for _, p := range e.Pods() {
			e.cause("ContainerBroken", "pod", p.Name)
		}
		e.ok("", "set", "image", "deployment/web", "main=web:v1")
		e.done("deployment/web")
		e.eventually(0, "1 Pods have the newest template", "explain", "deployment/web")
		e.Make("{apiVersion: v1, kind: Pod, metadata: {name: alone}, spec: {containers: [{name: main, image: \"web:v1\"}]}}")
		e.ends(1, "belongs to no workload", "explain", "pod/alone")
		e.ends(1, "not found", "explain", "pod/none")
	})
}

// TestSidecarSetAndJob checks the kinds whose status is about other things than replicas.
func TestSidecarSetAndJob(t *testing.T) {
	e := newEnv(t)
	set := e.Make(`
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: ` + e.Namespace + `}
spec:
  selector: {matchLabels: {app: web}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ` + e.Namespace + `}}
  containers: [{name: mesh, image: "mesh:v1"}]
`)
	e.CleanUp(set)
	e.Make(replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 2"))
	e.done("clone/web")
	e.eventually(0, "2/2 updated", "status", "sidecarset/"+set.GetName(), "--watch=false")
	e.ok("mesh=mesh:v2", "set", "image", "sidecarset", set.GetName(), "mesh=mesh:v2")
	e.eventually(0, "2/2 updated: all Pods are updated", "status", "sidecarset", set.GetName(), "--timeout", "2m")

	e.Make(`
apiVersion: apps.kruise.io/v1beta1
kind: BroadcastJob
metadata: {name: once}
spec: {paused: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "job:v1"}]}}}
`)
	e.eventually(2, "To go on: resume it", "status", "bcj/once")
	e.ok("broadcastjob/once resumed", "resume", "bcj/once")
	e.ok("3 succeeded", "status", "broadcastjob/once", "--timeout", "2m")
	e.ends(1, "keeps no earlier templates", "history", "bcj/once")
}

// TestUnitedDeployment checks that the template of its subsets is found.
func TestUnitedDeployment(t *testing.T) {
	e := newEnv(t)
	e.Make(`
apiVersion: apps.kruise.io/v1beta1
kind: UnitedDeployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  topology: {subsets: [{name: a}, {name: b}]}
  template:
    cloneSetTemplate:
      metadata: {labels: {app: web}}
      spec:
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec: {containers: [{name: main, image: "web:v1"}]}
`)
	e.done("ud/web")
	e.ok("main=web:v2", "set", "image", "ud/web", "main=web:v2")
	e.done("ud/web")
	e.allRun("web:v2", 2)
	e.ok("main=web:v1", "history", "ud/web")
	e.ok("+ web:v1", "undo", "ud/web")
	e.done("ud/web")
	e.allRun("web:v1", 2)
	e.ends(1, "can't be paused", "pause", "ud/web")
}

// TestCompletion checks what shells are offered.
func TestCompletion(t *testing.T) {
	e := newEnv(t)
	e.Make(replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 1"))
	e.ok("cloneset/\n", "__complete", "status", "clones")
	e.eventually(0, "cloneset/web\n", "__complete", "status", "cloneset/") // who completes does not wait for a slow API server
	e.eventually(0, "web\n", "__complete", "status", "clone", "w")
	e.ok("bash completion", "completion", "bash")
}
