package protection

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "github.com/seed-69ecc383/kruise/internal/rules/protection"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// sample is an object of a kind that policies judge. Those that a controller writes the status of are given it by hand.
type sample struct {
	resource, text string
	// status is what its status is set to, so that it holds something; holds is what the refusal says of that.
	status, holds string
	isCluster     bool
}

// samples are one of each kind.
func samples(name string) []sample {
	pods := fmt.Sprintf(`selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {nodeSelector: {no: node}, containers: [{name: app, image: "nginx:1"}]}}`, name)
	const job = `template: {spec: {restartPolicy: Never, nodeSelector: {no: node}, containers: [{name: app, image: "nginx:1"}]}}`
	// Two StatefulSets of the same name would want the same Pods.
	meta, own := "metadata: {name: "+name+"}", "metadata: {name: "+name+"-kruise}"
	return []sample{
		{resource: "configmaps", text: "{apiVersion: v1, kind: ConfigMap, " + meta + "}"},
		{resource: "secrets", text: "{apiVersion: v1, kind: Secret, " + meta + "}"},
		{resource: "services", text: "{apiVersion: v1, kind: Service, " + meta + ", spec: {ports: [{port: 80}]}}"},
		{resource: "namespaces", text: "{apiVersion: v1, kind: Namespace, " + meta + "}", isCluster: true},
		{resource: "deployments.apps", text: "{apiVersion: apps/v1, kind: Deployment, " + meta + ", spec: {replicas: 2, " + pods + "}}", holds: "replicas 2>0"},
		{resource: "replicasets.apps", text: "{apiVersion: apps/v1, kind: ReplicaSet, " + meta + ", spec: {replicas: 3, " + pods + "}}", holds: "replicas 3>0"},
		{resource: "statefulsets.apps", text: "{apiVersion: apps/v1, kind: StatefulSet, " + meta + ", spec: {" + pods + "}}", holds: "replicas 1>0"},
		{resource: "daemonsets.apps", text: "{apiVersion: apps/v1, kind: DaemonSet, " + meta + ", spec: {" + pods + "}}"},
		{resource: "jobs.batch", text: "{apiVersion: batch/v1, kind: Job, " + meta + ", spec: {suspend: true, " + job + "}}"},
		{resource: "cronjobs.batch", text: "{apiVersion: batch/v1, kind: CronJob, " + meta + ", spec: {suspend: true, schedule: '0 0 1 1 *', jobTemplate: {spec: {" + job + "}}}}"},
		{resource: "ingresses.networking.k8s.io", text: "{apiVersion: networking.k8s.io/v1, kind: Ingress, " + meta + ", spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}"},
		{resource: "clonesets.apps.kruise.io", text: "{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, " + own + ", spec: {replicas: 2, " + pods + "}}", holds: "replicas 2>0"},
		{
			resource: "uniteddeployments.apps.kruise.io", holds: "replicas 6>0",
			text: "{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, " + own + ", spec: {replicas: 6, selector: {matchLabels: {app: " + name +
				"}}, template: {deploymentTemplate: {metadata: {labels: {app: " + name + "}}, spec: {" + pods + "}}}, topology: {subsets: [{name: a}]}}}",
		},
		{resource: "statefulsets.apps.kruise.io", text: "{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, " + own + ", spec: {" + pods + "}}", holds: "replicas 1>0"},
		{
			resource: "daemonsets.apps.kruise.io", text: "{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, " + own + ", spec: {" + pods + "}}",
			status: `{"currentNumberScheduled":1,"numberMisscheduled":0,"desiredNumberScheduled":4,"numberReady":0,"updatedNumberScheduled":0,"daemonSetHash":"a"}`, holds: "replicas 4>0",
		},
		{
			resource: "broadcastjobs.apps.kruise.io", text: "{apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob, " + own + ", spec: {paused: true, " + job + "}}",
			status: `{"active":5,"desired":5}`, holds: "active pods 5>0",
		},
		{
			resource: "advancedcronjobs.apps.kruise.io", text: "{apiVersion: apps.kruise.io/v1beta1, kind: AdvancedCronJob, " + own + ", spec: {schedule: '0 0 1 1 *', template: {jobTemplate: {spec: {" + job + "}}}}}",
			status: `{"active":[{"apiVersion":"batch/v1","kind":"Job","name":"a"}]}`, holds: "active jobs 1>0",
		},
		{resource: "podunavailablebudgets.policy.kruise.io", text: "{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, " + meta + ", spec: {selector: {matchLabels: {app: " + name + "}}, maxUnavailable: 1}}"},
	}
}

// TestWithoutAManager: what policies judge is kept and what has no label goes while no manager runs, of every kind; and the rule that the
// managers report by agrees with the policy.
func TestWithoutAManager(t *testing.T) {
	g := newSerialGuard(t)
	used := g.namespace("Cascading")
	p := g.pod(used.Name)
	claim, volume := g.claim(g.Namespace)
	g.protect(claim, "Cascading")
	g.protect(volume, "Cascading")
	crd, holding := g.crd("Always"), g.NewNamespace(nil)
	inside := g.In(holding).Make("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {" + deletionLabel + ": Always}}}")
	labelled := map[string][]*unstructured.Unstructured{}
	for _, value := range []string{"Always", "Cascading", "never"} {
		for _, s := range samples(g.Namespace + "-" + strings.ToLower(value)) {
			labelled[value] = append(labelled[value], g.make(s, value))
		}
	}
	g.Site.Manager.Kill()
	defer func() { g.Must(g.Site.Relaunch(g.Ctx)) }()
	g.Must(g.Client.Delete(g.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: holding}}))
	for i, s := range samples("") {
		g.answers(s, labelled["Always"][i], always)
		if o := labelled["never"][i]; !s.isCluster {
			g.Must(g.Client.Delete(g.Ctx, o))
		}
		o, want := labelled["Cascading"][i], ""
		switch {
		case s.resource == "namespaces": // which are counted
			continue
		case s.holds != "":
			want = cascading + s.holds
		}
		if s.status != "" {
			g.Must(g.Client.Status().Patch(g.Ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"status":`+s.status+`}`))))
		}
		g.answers(s, o, want)
	}
	g.keeps(claim, cascading+`status "Bound"`)
	g.keeps(volume, cascading+`status "Bound"`)
	g.keeps(crd, always)
	t.Log("what has to be counted is kept, too, as there is nobody to count it")
	g.protect(crd, "Cascading")
	if err := g.Client.Delete(g.Ctx, crd); !apierrors.IsInternalError(err) {
		t.Errorf("deleting a CRD whose objects nobody counts: %v", err)
	}
	if err := g.Client.Delete(g.Ctx, used); !apierrors.IsInternalError(err) {
		t.Errorf("deleting a namespace with a Pod: %v", err)
	}
	g.Must(g.Client.Get(g.Ctx, client.ObjectKeyFromObject(p), p))
	g.saysWhatKeeps(holding, "settings", always)
	g.unprotect(inside)
}

// saysWhatKeeps waits until the conditions of a namespace that is being deleted name what keeps it, with these texts.
func (g *guard) saysWhatKeeps(namespace string, texts ...string) {
	g.Helper()
	n := &corev1.Namespace{}
	g.Within(2*time.Minute, "the namespace says what keeps it", func() error { // it is looked at again only now and then
		g.Must(g.Client.Get(g.Ctx, client.ObjectKey{Name: namespace}, n))
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NamespaceDeletionContentFailure && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(c.Message, text) }) {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", n.Status.Conditions)
	})
}

// make makes an object of a kind with the label.
func (g *guard) make(s sample, value string) *unstructured.Unstructured {
	g.Helper()
	o := g.Manifest(s.text)
	if s.isCluster {
		o.SetNamespace("")
	}
	o.SetLabels(map[string]string{deletionLabel: value})
	g.Must(g.Client.Create(g.Ctx, o))
	return o
}

// answers checks that the API server answers the deletion of an object as wanted, and that the rule for reports says the same.
func (g *guard) answers(s sample, o *unstructured.Unstructured, want string) {
	g.Helper()
	if got := rules.Refusal(schema.ParseGroupResource(s.resource), o); got != want {
		g.Errorf("%s %s is reported as %q, want %q", s.resource, o.GetName(), got, want)
	}
	err := g.Client.Delete(g.Ctx, o, client.DryRunAll)
	if want != "" {
		err = refusedWith(err, want)
	}
	if err != nil {
		g.Errorf("deleting %s %s: %v", s.resource, o.GetName(), err)
	}
}

// TestWithTheGateOff nothing is kept from deletion, and the policies are off, too; with the gate on again they hold.
func TestWithTheGateOff(t *testing.T) {
	g := newSerialGuard(t)
	n := g.namespace("Cascading")
	g.pod(n.Name)
	web := g.Make(workloads()["apps/v1 Deployment"])
	settings := g.Make("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {" + deletionLabel + ": Always}}}")
	g.Site.Manager.Stop()
	g.Must(g.Site.Relaunch(g.Ctx, "--feature-gates=ResourcesDeletionProtection=false"))
	defer func() {
		g.Site.Manager.Stop()
		g.Must(g.Site.Relaunch(g.Ctx))
	}()
	for _, o := range []client.Object{n, web, settings} {
		g.goes(o)
	}
	g.Site.Manager.Stop()
	g.Must(g.Site.Relaunch(g.Ctx))
	o := g.Make("{apiVersion: v1, kind: ConfigMap, metadata: {name: again, labels: {" + deletionLabel + ": Always}}}")
	g.Eventually("the policies hold", func() error { return refusedWith(g.Client.Delete(g.Ctx, o, client.DryRunAll), always) })
	g.unprotect(o)
}

// TestDeletionOfCRDs that have objects, with the gate for them off and on.
func TestDeletionOfCRDs(t *testing.T) {
	g := newSerialGuard(t)
	crd := g.crd("Always")
	tree := g.instance(crd)
	g.keeps(crd, always)
	g.protect(crd, "Cascading")
	g.keeps(crd, "feature-gate DeletionProtectionForCRDCascadingGate is not enabled")
	g.Site.Manager.Stop()
	g.Must(g.Site.Relaunch(g.Ctx, "--feature-gates=DeletionProtectionForCRDCascadingGate=true"))
	defer func() {
		g.Site.Manager.Stop()
		g.Must(g.Site.Relaunch(g.Ctx))
	}()
	t.Log("without the right to list its objects, it is kept")
	g.keeps(crd, forbidden+"list CRs error: ")
	defer g.apply("crd_cascading.yaml")()
	g.Eventually("the object of the CRD is counted", func() error { return refusedWith(g.Client.Delete(g.Ctx, crd), cascading+"active CRs 1>0") })
	g.keeps(crd, cascading+"active CRs 1>0")
	g.Must(g.Client.Delete(g.Ctx, tree))
	g.goes(crd)
}

// TestProtectionUnderFaults: while managers are killed, stopped and started, nothing protected is ever deleted that has what it would take with it.
func TestProtectionUnderFaults(t *testing.T) {
	g := newSerialGuard(t)
	n := g.namespace("Cascading")
	g.pod(n.Name)
	claim, _ := g.claim(g.Namespace)
	g.protect(claim, "Cascading")
	objects := []client.Object{n, claim, g.Make(workloads()["apps/v1 Deployment"]), g.Make(workloads()["apps.kruise.io/v1beta1 CloneSet"])}
	ctx, cancel := context.WithCancel(g.Ctx)
	var deleting sync.WaitGroup
	var tries atomic.Int64
	for _, o := range objects {
		deleting.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
				tries.Add(1)
				if err := g.Client.Delete(ctx, o.DeepCopyObject().(client.Object)); err == nil {
					t.Errorf("%T %s could be deleted", o, o.GetName())
					return
				}
			}
		})
	}
	for range 3 {
		time.Sleep(500 * time.Millisecond)
		g.Must(syscall.Kill(g.Site.Manager.PID(), syscall.SIGSTOP))
		time.Sleep(time.Second)
		g.Must(syscall.Kill(g.Site.Manager.PID(), syscall.SIGCONT))
		time.Sleep(500 * time.Millisecond)
		g.CrashManager()
	}
	cancel()
	deleting.Wait()
	for _, o := range objects {
		g.Must(g.Client.Get(g.Ctx, client.ObjectKeyFromObject(o), o))
		if o.GetDeletionTimestamp() != nil {
			t.Errorf("%T %s is being deleted", o, o.GetName())
		}
	}
	if tries.Load() < 50 {
		t.Errorf("only %d tries", tries.Load())
	}
}

// TestTheSwitchIsTheConfiguration: without the configuration of the webhooks nothing protected is deleted.
func TestTheSwitchIsTheConfiguration(t *testing.T) {
	g := newSerialGuard(t)
	settings := g.Make("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {" + deletionLabel + ": Always}}}")
	g.Site.Manager.Kill()
	defer func() { g.Must(g.Site.Relaunch(g.Ctx)) }()
	configuration := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kruise-validating-webhook-configuration"}}
	g.Must(g.Client.Delete(g.Ctx, configuration))
	g.Always(2*time.Second, "a protected object is kept", func() error {
		if err := g.Client.Delete(g.Ctx, settings, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "is forbidden") {
			return errors.Join(errors.New("it could be deleted"), err)
		}
		return nil
	})
}

// TestStickyLabels: with the optional policy the label comes off with an annotation only.
func TestStickyLabels(t *testing.T) {
	g := newSerialGuard(t)
	root, err := cluster.Root()
	g.Must(err)
	file := filepath.Join(root, "config/protection/optional/sticky.yaml")
	g.Must(g.ApplyFile(g.Ctx, file))
	o := g.Make("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {" + deletionLabel + ": Always}}}")
	patch := func(text string) error {
		return g.Client.Patch(g.Ctx, o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)), client.DryRunAll)
	}
	remove := `{"metadata":{"labels":{"` + deletionLabel + `":null}}}`
	g.Eventually("the label sticks", func() error {
		return refusedWith(patch(remove), "can only be removed with the annotation policy.kruise.io/delete-protection-unlock=settings")
	})
	for text, want := range map[string]bool{
		`{"metadata":{"labels":{"` + deletionLabel + `":"Cascading"}}}`:                                                                 false,
		`{"metadata":{"labels":{"` + deletionLabel + `":null},"annotations":{"policy.kruise.io/delete-protection-unlock":"another"}}}`:  false,
		`{"metadata":{"labels":{"` + deletionLabel + `":null},"annotations":{"policy.kruise.io/delete-protection-unlock":"settings"}}}`: true,
		`{"data":{"a":"b"}}`: true,
	} {
		if err := patch(text); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	g.Must(g.Client.Patch(g.Ctx, o, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"policy.kruise.io/delete-protection-unlock":"settings"}}}`))))
	g.unprotect(o)
	g.protect(o, "Always")
	_, err = g.Kubectl(g.Ctx, "delete", "-f", file)
	g.Must(err)
	remove = `{"metadata":{"labels":{"` + deletionLabel + `":null},"annotations":null}}`
	g.Eventually("without the policy the label does not stick", func() error { return patch(remove) })
}
