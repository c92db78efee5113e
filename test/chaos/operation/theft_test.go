package operation

import (
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// TestAStolenTokenOfTheManager tries what docs/threat-model.md says that it cannot do, and that the manager can do its work.
func TestAStolenTokenOfTheManager(t *testing.T) {
	s := newSite(t, cluster.Options{Nodes: 1})
	s.Must(s.Install(s.Ctx))
	s.Must(s.Launch("first", cluster.ManagerOptions{}).WaitReady(s.Ctx))
	thief := s.thief()
	victim := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "victim", Namespace: "default"}, Spec: one("app")}
	s.Must(s.Client.Create(s.Ctx, victim))
	s.Must(s.Client.Create(s.Ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "default"}}))
	ownedBy := func(apiVersion, kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "victim", UID: victim.UID, Controller: new(true)}}
	}
	job := func(owners []metav1.OwnerReference) *batchv1.Job {
		spec := one("app")
		spec.RestartPolicy = corev1.RestartPolicyNever
		return &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "tried", Namespace: "default", OwnerReferences: owners},
			Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}},
		}
	}
	pod := func(owners []metav1.OwnerReference) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "tried", Namespace: "default", OwnerReferences: owners}, Spec: one("app")}
	}
	configMap := func(namespace, name string, owners []metav1.OwnerReference) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, OwnerReferences: owners}}
	}
	meta := metav1.ObjectMeta{Name: "tried", Namespace: "kruise-system",
		Annotations: map[string]string{"kubernetes.io/service-account.name": "default"}}
	for name, o := range map[string]client.Object{
		"a ConfigMap of its own":                configMap("default", "tried", nil),
		"a ConfigMap that a Pod owns":           configMap("default", "tried", ownedBy("v1", "Pod")),
		"a barrier in the system's namespace":   configMap("kube-system", "victim-barrier", ownedBy("v1", "Pod")),
		"a Pod without an owner":                pod(nil),
		"a Pod of a Deployment's ReplicaSet":    pod(ownedBy("apps/v1", "ReplicaSet")),
		"a Pod of a SidecarSet, which has none": pod(ownedBy("apps.kruise.io/v1beta1", "SidecarSet")),
		"a Job without an owner":                job(nil),
		"a Job of a CloneSet":                   job(ownedBy("apps.kruise.io/v1beta1", "CloneSet")),
		"a BroadcastJob without an owner": &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Name: "tried",
			Namespace: "default"}},
		"a Secret for the token of another account": &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeServiceAccountToken},
		"a webhook configuration of its own": &admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "tried"},
		},
	} {
		s.isForbidden("create "+name, func() error { return thief.Create(s.Ctx, o.DeepCopyObject().(client.Object), client.DryRunAll) })
	}
	patch := func(o client.Object, text string) func() error {
		return func() error {
			return thief.Patch(s.Ctx, o.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(text)))
		}
	}
	s.isForbidden("change a ConfigMap of somebody", patch(configMap("default", "settings", nil), `{"data":{"a":"b"}}`))
	s.isForbidden("make a ConfigMap of somebody a barrier", patch(configMap("default", "settings", nil),
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"settings","uid":"u"}]}}`))
	s.isForbidden("change a ConfigMap of the system",
		patch(configMap("kube-system", "extension-apiserver-authentication", nil), `{"data":{"a":"b"}}`))
	s.isForbidden("delete a ConfigMap of somebody", func() error { return thief.Delete(s.Ctx, configMap("default", "settings", nil)) })
	s.isForbidden("get into a Pod", func() error {
		with := victim.DeepCopy()
		s.Must(s.Client.Get(s.Ctx, client.ObjectKeyFromObject(victim), with))
		before := with.DeepCopy()
		with.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "shell", Image: "busybox", TerminationMessagePolicy: "File"},
		}}
		return thief.SubResource("ephemeralcontainers").Patch(s.Ctx, with, client.StrategicMergeFrom(before))
	})
	s.isForbidden("read a Secret", func() error {
		return thief.Get(s.Ctx, client.ObjectKey{Namespace: "kube-system", Name: "any"}, &corev1.Secret{})
	})

	s.sendsElsewhere(thief)
	s.takesWorkloads(thief)

	t.Log("the barrier of a Pod is what the right on ConfigMaps is for")
	s.Must(thief.Create(s.Ctx, configMap("default", "victim-barrier", ownedBy("v1", "Pod"))))
	s.Must(thief.Delete(s.Ctx, configMap("default", "victim-barrier", nil)))
	s.Must(s.Client.Create(s.Ctx, cloneSet("works", 2)))
	s.available("works", 2)
}

// sendsElsewhere checks that the thief cannot have the API server send requests to anybody but the managers.
func (s *site) sendsElsewhere(thief client.Client) {
	s.Helper()
	url := "https://example.com/steal"
	for name, to := range map[string]admissionv1.WebhookClientConfig{
		"another Service": {Service: &admissionv1.ServiceReference{Namespace: "default", Name: "thief"}}, "a URL": {URL: &url},
	} {
		s.isForbidden("have Pods sent to "+name, func() error {
			var c admissionv1.MutatingWebhookConfiguration
			s.Must(thief.Get(s.Ctx, client.ObjectKey{Name: "kruise-mutating-webhook-configuration"}, &c))
			more := c.Webhooks[0].DeepCopy()
			more.Name, more.ClientConfig = "more.kb.io", to
			c.Webhooks = append(c.Webhooks, *more)
			return thief.Update(s.Ctx, &c, client.DryRunAll)
		})
		s.isForbidden("have what is validated sent to "+name, func() error {
			var c admissionv1.ValidatingWebhookConfiguration
			s.Must(thief.Get(s.Ctx, client.ObjectKey{Name: "kruise-validating-webhook-configuration"}, &c))
			c.Webhooks[0].ClientConfig = to
			return thief.Update(s.Ctx, &c, client.DryRunAll)
		})
		s.isForbidden("have conversions sent to "+name, func() error {
			var crd apiextensionsv1.CustomResourceDefinition
			s.Must(thief.Get(s.Ctx, client.ObjectKey{Name: "clonesets.apps.kruise.io"}, &crd))
			c := crd.Spec.Conversion.Webhook.ClientConfig
			c.URL, c.Service = to.URL, nil
			if to.Service != nil {
				c.Service = &apiextensionsv1.ServiceReference{Namespace: to.Service.Namespace, Name: to.Service.Name}
			}
			return thief.Update(s.Ctx, &crd, client.DryRunAll)
		})
	}
}

// takesWorkloads checks that the thief cannot have Pods made by workloads that no UnitedDeployment controls, or delete them.
func (s *site) takesWorkloads(thief client.Client) {
	s.Helper()
	labels := map[string]string{"app": "somebody"}
	own := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "somebody", Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: one("app")},
		},
	}
	s.isForbidden("create a Deployment without an owner", func() error {
		return thief.Create(s.Ctx, own.DeepCopy(), client.DryRunAll)
	})
	s.Must(s.Client.Create(s.Ctx, own))
	set := cloneSet("somebody", 0)
	s.Must(s.Client.Create(s.Ctx, set))
	s.isForbidden("scale a Deployment of somebody", func() error {
		return thief.Patch(s.Ctx, own.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":9}}`)))
	})
	s.isForbidden("make a Deployment of somebody a UnitedDeployment's", func() error {
		return thief.Patch(s.Ctx, own.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"ownerReferences":[
			{"apiVersion":"apps.kruise.io/v1beta1","kind":"UnitedDeployment","name":"u","uid":"u","controller":true}]}}`)))
	})
	s.isForbidden("delete a Deployment of somebody", func() error { return thief.Delete(s.Ctx, own.DeepCopy(), client.DryRunAll) })
	s.isForbidden("delete a CloneSet of somebody", func() error { return thief.Delete(s.Ctx, set.DeepCopy(), client.DryRunAll) })
}

func one(name string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "nginx:alpine"}}}
}

// thief returns a client with the token of the manager.
func (s *site) thief() client.Client {
	s.Helper()
	path, err := s.ManagerKubeconfig(s.Ctx, s.Dir)
	s.Must(err)
	config, err := clientcmd.BuildConfigFromFlags("", path)
	s.Must(err)
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.New(config, client.Options{Scheme: s.Client.Scheme()})
	s.Must(err)
	return c
}

// isForbidden checks that something is refused for who asks. Policies hold a moment after they are made.
func (s *site) isForbidden(what string, try func() error) {
	s.Helper()
	var err error
	for range 300 {
		if err = try(); apierrors.IsForbidden(err) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Errorf("who has the manager's token may %s: %v", what, err)
}

// TestFewerRights: a controller whose rights are taken away says so and stays off, and the others run.
func TestFewerRights(t *testing.T) {
	s := newSite(t, cluster.Options{Nodes: 1})
	s.Must(s.Install(s.Ctx))
	s.withoutRights("pods/ephemeralcontainers", "configmaps", "*/scale")
	m := s.Launch("narrow", cluster.ManagerOptions{})
	s.Must(m.WaitReady(s.Ctx))
	log := m.Tail(1000)
	for controller, right := range map[string]string{
		"ephemeraljob-controller": "patch pods/ephemeralcontainers", "container-launch-priority-controller": "create configmaps",
		"podunavailablebudget-controller": "get *.*/scale",
	} {
		said := false
		for line := range strings.Lines(log) {
			said = said || strings.Contains(line, "Controller is off") && strings.Contains(line, controller) &&
				strings.Contains(line, right)
		}
		if !said {
			t.Errorf("the manager does not say that %s is off for want of %q", controller, right)
		}
	}
	s.Must(s.Client.Create(s.Ctx, cloneSet("works", 2)))
	s.available("works", 2)
}

// withoutRights takes resources out of the manager's role.
func (s *site) withoutRights(resources ...string) {
	s.Helper()
	var role rbacv1.ClusterRole
	s.Must(s.Client.Get(s.Ctx, client.ObjectKey{Name: "kruise-manager-role"}, &role))
	for i := range role.Rules {
		rule := &role.Rules[i]
		rule.Resources = slices.DeleteFunc(rule.Resources, func(r string) bool { return slices.Contains(resources, r) })
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return len(r.Resources) == 0 })
	s.Must(s.Client.Update(s.Ctx, &role))
}

// TestPoliciesHoldInWhateverNamespace Kruise is installed: they know accounts by their names.
func TestPoliciesHoldInWhateverNamespace(t *testing.T) {
	s := newSite(t, cluster.Options{})
	s.Must(s.Install(s.Ctx))
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "victim", Namespace: "default"}, Spec: one("app")}
	s.Must(s.Client.Create(s.Ctx, p))
	as := func(account string) client.Client {
		config := rest.CopyConfig(s.Config)
		config.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:elsewhere:" + account, Groups: []string{"system:masters"}, // who may do everything else
		}
		c, err := client.New(config, client.Options{Scheme: s.Client.Scheme()})
		s.Must(err)
		return c
	}
	manager, daemon := as("kruise-manager"), as("kruise-daemon")
	s.isForbidden("create a ConfigMap", func() error {
		return manager.Create(s.Ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}}, client.DryRunAll)
	})
	s.isForbidden("write the status of a Pod", func() error {
		change := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"message":"lie"}}`))
		return daemon.Status().Patch(s.Ctx, p.DeepCopy(), change,
			&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{"All"}}})
	})
	s.Must(as("kruise-manager-of-somebody").Create(s.Ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default"}}))
}
