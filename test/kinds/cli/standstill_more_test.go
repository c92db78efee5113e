package cli

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// errNotYet is the error of what is waited for.
var errNotYet = errors.New("not yet")

// podsOutOfService are situations in which a Pod holds a workload.
func podsOutOfService() map[string]standstill {
	ordered := replicated("apps.kruise.io/v1beta1", "StatefulSet", "replicas: 2\n  serviceName: web\n  updateStrategy: {rollingUpdate: {partition: 1}}")
	claims := "replicas: 1\n  serviceName: web\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: \"\", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}]"
	unfit := func(manifest string) string {
		return strings.Replace(manifest, "spec: {containers", "spec: {nodeSelector: {no: such}, containers", 1)
	}
	return map[string]standstill{
		"an image that can't be pulled": {updated(kruiseSet("replicas: 2\n  updateStrategy: {rollingUpdate: {maxUnavailable: 1}}"), "clone/web", "web:fail-pull"), "clone/web", "", "WaitImagePull", "container main", "kubectl kruise undo cloneset/web"},
		"maxUnavailable":                {updated(kruiseSet("replicas: 2\n  updateStrategy: {rollingUpdate: {maxUnavailable: 1}}"), "clone/web", "web:fail-pull"), "clone/web", "web:v1", "WaitBudget", "maxUnavailable 1 is used up", "raise its maxUnavailable"},
		"a container that crashes":      {made(strings.Replace(kruiseSet("replicas: 1"), "web:v1", "web:crash", 1)), "clone/web", "", "ContainerBroken", "CrashLoopBackOff", "kubectl describe pod"},
		"a Pod that is not ready":       {made(strings.Replace(kruiseSet("replicas: 1"), "web:v1", "web:never-ready", 1)), "clone/web", "", "WaitReady", "not ready", "kubectl logs"},
		"a Deployment's Pod":            {made(strings.Replace(replicated("apps/v1", "Deployment", "replicas: 1"), "web:v1", "web:never-ready", 1)), "deployment/web", "", "WaitReady", "not ready", "kubectl logs"},
		"a StatefulSet's Pod":           {made(strings.Replace(replicated("apps/v1", "StatefulSet", "replicas: 1\n  serviceName: web"), "web:v1", "web:fail-pull", 1)), "sts/web", "", "WaitImagePull", "container main", "kubectl describe pod"},
		"no node that fits":             {made(unfit(kruiseSet("replicas: 1"))), "clone/web", "", "WaitSchedule", "nodes are available", "make room on a node"},
		"a claim that is not bound":     {made(replicated("apps.kruise.io/v1beta1", "StatefulSet", claims)), "asts/web", "", "WaitVolumeClaim", "PersistentVolumeClaim", "StorageClass"},
		"a Pod with a finalizer":        {leavingPod, "clone/web", "", "WaitDeletion", "example.com/keep", "take them off Pod"},
		"a node that is gone":           {lostNode, "clone/web", "", "NodeNotReady", "does not answer", "bring node"},
		"a StatefulSet in order":        {made(strings.Replace(ordered, "web:v1", "web:never-ready", 1)), "asts/web", "", "WaitReady", "not ready", "kubectl logs"},
		"an update in order":            {updatedInOrder(ordered), "asts/web", "web:v1", "WaitEarlierOrdinal", "OrderedReady", "bring the Pod into service"},
	}
}

// updatedInOrder has an update of the last Pod fail, and wants that of the others.
func updatedInOrder(manifest string) func(*env) {
	return func(e *env) {
		updated(manifest, "asts/web", "web:never-ready")(e)
		e.Eventually("the last Pod is updated", func() error {
			if e.podWith("web:never-ready") == "none" {
				return errNotYet
			}
			return nil
		})
		scene.Edit(e.Env, "web", &v1beta1.StatefulSet{}, func(s *v1beta1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Image = "web:never-ready"
			s.Spec.UpdateStrategy.RollingUpdate.Partition = new(int32)
		})
	}
}

// leavingPod deletes a Pod that has a finalizer.
func leavingPod(e *env) {
	running(kruiseSet("replicas: 1"), "clone/web")(e)
	e.editPod("web:v1", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/keep"} })
	e.Must(e.Client.Delete(e.Ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: e.podWith("web:v1"), Namespace: e.Namespace}}))
}

// lostNode has a Pod on a node that nobody runs, as Kubernetes leaves it when the node does not answer any more.
func lostNode(e *env) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace + "-ghost"}}
	node.Spec.Taints = []corev1.Taint{{Key: "ghost", Effect: corev1.TaintEffectNoSchedule}} // DaemonSets of other tests leave it out
	e.Must(e.Client.Create(e.Ctx, node))
	e.CleanUp(node)
	e.Make(strings.Replace(kruiseSet("replicas: 1"), "spec: {containers", "spec: {nodeName: "+node.Name+", tolerations: [{operator: Exists}], containers", 1))
	e.Eventually("the Pod was lost", func() error {
		pods := e.Pods()
		if len(pods) == 0 {
			return errNotYet
		}
		p := &pods[0]
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()},
		}
		for _, gate := range p.Spec.ReadinessGates {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: gate.ConditionType, Status: corev1.ConditionTrue})
		}
		return e.Client.Status().Update(e.Ctx, p)
	})
}

// refusals are situations in which the API server refuses a write, or a budget does.
func refusals() map[string]standstill {
	one := kruiseSet("replicas: 1")
	job := "{apiVersion: batch/v1, kind: Job, metadata: {name: once}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: \"job:v1\"}]}}}}"
	return map[string]standstill{
		"a quota":                      {full(one), "clone/web", "", "QuotaExceeded", "exceeded quota: none", "ResourceQuota"},
		"a quota for a StatefulSet":    {full(replicated("apps.kruise.io/v1beta1", "StatefulSet", "replicas: 1\n  serviceName: web")), "asts/web", "", "QuotaExceeded", "exceeded quota: none", "ResourceQuota"},
		"a quota for a Deployment":     {full(replicated("apps/v1", "Deployment", "replicas: 1")), "deployment/web", "", "QuotaExceeded", "exceeded quota: none", "ResourceQuota"},
		"a quota for the Pods of jobs": {full(job), "job/once", "", "QuotaExceeded", "exceeded quota: none", "ResourceQuota"},
		"a policy":                     {forbidden, "clone/web", "", "AdmissionRefused", "denied request", "what the policy or the webhook"},
		"a webhook that is down":       {webhookDown, "clone/web", "", "WebhookDown", "failed calling webhook", "bring the webhook"},
		"a PodUnavailableBudget": {func(e *env) {
			running(kruiseSet("replicas: 1\n  updateStrategy: {rollingUpdate: {maxUnavailable: 1}}"), "clone/web")(e)
			e.Make("{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: guard}, spec: {selector: {matchLabels: {app: web}}, maxUnavailable: 0}}")
			e.eventually(0, "PodUnavailableBudget guard allows 0", "plan", "clone/web")
			e.ok("image updated", "set", "image", "clone/web", "main=web:v2")
		}, "clone/web", "", "WaitPUB", "PodUnavailableBudget guard", "change that PodUnavailableBudget"},
	}
}

// forbidden makes a policy that lets no Pod of the namespace be, and then a CloneSet.
func forbidden(e *env) {
	policy := e.Make(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ` + e.Namespace + `}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ` + e.Namespace + `}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: "false", message: no Pods here}]
`)
	binding := e.Make(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: ` + e.Namespace + `}
spec: {policyName: ` + e.Namespace + `, validationActions: [Deny]}
`)
	e.CleanUp(policy)
	e.CleanUp(binding)
	e.refusesPods()
	e.Make(kruiseSet("replicas: 1"))
}

// webhookDown makes a webhook for Pods of the namespace behind which nobody is, and then a CloneSet.
func webhookDown(e *env) {
	webhook := e.Make(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: ` + e.Namespace + `}
webhooks:
- name: down.example.com
  clientConfig: {url: "https://127.0.0.1:1/"}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ` + e.Namespace + `}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  sideEffects: None
  admissionReviewVersions: [v1]
  timeoutSeconds: 1
`)
	e.CleanUp(webhook)
	e.refusesPods()
	e.Make(kruiseSet("replicas: 1"))
}

// refusesPods waits until the API server refuses Pods.
func (e *env) refusesPods() {
	e.Helper()
	e.Eventually("Pods are refused", func() error {
		p := e.Manifest("{apiVersion: v1, kind: Pod, metadata: {name: trial}, spec: {containers: [{name: main, image: \"web:v1\"}]}}")
		if err := e.Client.Create(e.Ctx, p, client.DryRunAll); err != nil {
			return nil
		}
		return errNotYet
	})
}

// otherKinds are situations of jobs and of sets of sets.
func otherKinds() map[string]standstill {
	broadcast := func(spec string) string {
		return "{apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob, metadata: {name: once}, spec: {" + spec + ", template: {spec: {restartPolicy: Never, containers: [{name: main, image: \"job:crash\"}]}}}}"
	}
	sidecars := func(strategy string) func(*env) {
		return func(e *env) {
			e.CleanUp(e.Make(sidecarSet(e, "updateStrategy: {"+strategy+"}")))
			running(kruiseSet("replicas: 1"), "clone/web")(e)
			e.eventually(0, "1/1 updated", "status", "sidecarset/"+e.Namespace, "--watch=false")
			e.ok("mesh=mesh:v2", "set", "image", "sidecarset", e.Namespace, "mesh=mesh:v2")
		}
	}
	return map[string]standstill{
		"a BroadcastJob that has failed": {made(broadcast("failurePolicy: {type: FailFast}")), "bcj/once", "", "Stopped", "failed", "create it anew"},
		"a BroadcastJob that is paused":  {made(broadcast("paused: true")), "bcj/once", "", "HeldByPause", "paused", "kubectl kruise resume broadcastjob/once"},
		"a Job that is suspended": {made("{apiVersion: batch/v1, kind: Job, metadata: {name: once}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: \"job:v1\"}]}}}}"),
			"job/once", "", "HeldByPause", "suspended", "kubectl kruise resume job/once"},
		"a SidecarSet that is paused":     {sidecars("paused: true"), "sidecarset/NAMESPACE", "", "HeldByPause", "paused", "kubectl kruise resume sidecarset/"},
		"a SidecarSet at its partition":   {sidecars("partition: 1"), "sidecarset/NAMESPACE", "", "HeldByPartition", "", "partition of sidecarset/"},
		"a Pod older than its SidecarSet": {func(e *env) { running(kruiseSet("replicas: 1"), "clone/web")(e); e.CleanUp(e.Make(sidecarSet(e, ""))) }, "clone/web", "web:v1", "NotInjected", "created before sidecarset/", "recreate Pod"},
		"a SidecarSet that injects nothing": {func(e *env) {
			e.CleanUp(e.Make(sidecarSet(e, "injectionStrategy: {paused: true}")))
			running(kruiseSet("replicas: 1"), "clone/web")(e)
		}, "clone/web", "web:v1", "NotInjected", "injectionStrategy is paused", "injectionStrategy.paused false"},
		"a wave with a pause": {func(e *env) {
			running(waves, "ud/web")(e)
			e.ok("main=web:v2", "set", "image", "ud/web", "main=web:v2")
		}, "ud/web", "", "WaitApproval", "wave first is done", "annotate it with"},
	}
}

const waves = `
apiVersion: apps.kruise.io/v1beta1
kind: UnitedDeployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  topology: {subsets: [{name: a, replicas: 1}, {name: b}]}
  updateStrategy: {waves: [{name: first, subsets: [a], pause: true}, {name: rest, subsets: [b]}]}
  template:
    cloneSetTemplate:
      metadata: {labels: {app: web}}
      spec:
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec: {containers: [{name: main, image: "web:v1"}]}
`

// sidecarSet returns the manifest of a SidecarSet for the namespace of a test.
func sidecarSet(e *env, spec string) string {
	return `
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: ` + e.Namespace + `}
spec:
  selector: {matchLabels: {app: web}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ` + e.Namespace + `}}
  containers: [{name: mesh, image: "mesh:v1"}]
  ` + spec + "\n"
}

// releases are situations of Rollouts.
func releases() map[string]standstill {
	released := func(then func(*env)) func(*env) {
		return func(e *env) {
			e.released()
			e.ok("image updated", "set", "image", "clone/web", "main=web:v2")
			e.eventually(2, "step 1/3", "status", "rollout/demo", "--timeout", "2m")
			then(e)
		}
	}
	nothing := func(*env) {}
	return map[string]standstill{
		"a step that waits for an approval": {released(nothing), "rollout/demo", "", "WaitApproval", "", "kubectl kruise approve demo"},
		"a workload that a Rollout holds":   {released(nothing), "clone/web", "", "HeldByRollout", "rollout/demo", "explain rollout/demo"},
		"a Pod that a Rollout holds":        {released(nothing), "clone/web", "web:v1", "HeldByRollout", "later step", "explain rollout/demo"},
		"a Rollout that is paused":          {released(func(e *env) { e.ok("paused", "pause", "rollout/demo") }), "rollout/demo", "", "HeldByPause", "paused", "kubectl kruise resume rollout/demo"},
		"a release that was given up":       {released(func(e *env) { e.ok("rolled back", "abort", "demo", "-y") }), "rollout/demo", "", "Stopped", "did not succeed", "begins the next release"},
		"a Rollout without its workload":    {made(steps), "rollout/demo", "", "Stopped", "", "create CloneSet web"},
	}
}

// TestControllerLag stops the manager: it runs alone.
func TestControllerLag(t *testing.T) {
	e := alone(t)
	running(kruiseSet("replicas: 1"), "clone/web")(e)
	e.lags("clone/web", 2)
}

// TestControllerLagBehindARollout: of a Rollout at work, what its workload lacks is told.
func TestControllerLagBehindARollout(t *testing.T) {
	e := alone(t)
	e.released()
	e.ok("image updated", "set", "image", "clone/web", "main=web:fail-pull")
	e.standsStill(standstill{of: "rollout/demo", code: "WaitImagePull", says: "container main"})
	e.lags("rollout/demo", 4)
}

// lags has a change of CloneSet web that its controller does not see, which is told of an object, and then one that it sees soon, which is
// not told.
func (e *env) lags(of string, replicas int32) {
	e.Helper()
	stop := func(signal syscall.Signal) { e.Must(syscall.Kill(shared.Manager.PID(), signal)) }
	stop(syscall.SIGSTOP)
	defer stop(syscall.SIGCONT)
	set := &v1beta1.CloneSet{}
	e.Read("web", set)
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	e.Must(e.Client.SubResource("scale").Update(e.Ctx, set, client.WithSubResourceBody(scale))) // which asks no webhook of the manager
	e.standsStill(standstill{of: of, code: "ControllerLag", says: "has not seen the present spec", free: "kruise-manager runs"})

	answer := make(chan result, 1)
	go func() { answer <- e.run("explain", of) }()
	time.Sleep(time.Second) // by then explain has read the CloneSet
	e.Read("web", set)
	set.Status.ObservedGeneration = set.Generation
	e.Must(e.Client.Status().Update(e.Ctx, set))
	if got := <-answer; got.code != 0 || got.says("ControllerLag") {
		e.Errorf("while its controller sees the change, explain says:\n%s", got)
	}
}
