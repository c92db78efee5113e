package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// The release in these tests, in the namespace of the managers: nobody here ends namespaces that are deleted.
const managers = "kruise-system"

// helm runs Helm for the release of the test.
func (s *stage) helm(verb string, more ...string) (string, error) {
	args := []string{verb, "kruise"}
	if verb != "uninstall" {
		args = append(args, "charts/kruise", "--create-namespace")
	}
	return s.Helm(s.Ctx, append(append(args, "--namespace", managers), more...)...)
}

// manage starts a manager beside the API server, with the account, the Service and the flags that the chart has installed.
func (s *stage) manage(name string) *cluster.Manager {
	s.Helper()
	return s.start(name, managers, "kruise-webhook-service", cluster.ManagerOptions{Args: s.flags("kruise-controller-manager", managers)})
}

// flags returns the flags that a Deployment gives to its managers.
func (s *stage) flags(deployment, namespace string) []string {
	s.Helper()
	var d appsv1.Deployment
	s.Must(s.Client.Get(s.Ctx, client.ObjectKey{Namespace: namespace, Name: deployment}, &d))
	return d.Spec.Template.Spec.Containers[0].Args
}

// start starts any manager, and waits until it is ready.
func (s *stage) start(name, namespace, service string, o cluster.ManagerOptions) *cluster.Manager {
	s.Helper()
	o.Env = []string{"WEBHOOK_HOST="}
	m := s.Launch(name, o)
	number, err := strconv.Atoi(m.WebhookPort())
	s.Must(err)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{s.ownAddress()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		}},
		Ports: []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(number))}}, //nolint:gosec // a port
	}
	s.Must(s.Client.Create(s.Ctx, slice))
	s.Cleanup(func() { _ = s.Client.Delete(s.Afterwards(), slice) }) // the cluster goes, too
	s.Must(m.WaitReady(s.Ctx))
	return m
}

// ownAddress returns an address of this machine other than loopback, which no EndpointSlice may hold.
func (s *stage) ownAddress() string {
	s.Helper()
	all, err := net.InterfaceAddrs()
	s.Must(err)
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	s.Fatal("this machine has no IPv4 address besides loopback")
	return ""
}

// roll creates a CloneSet, and waits for its Pods.
func (s *stage) roll(replicas int) {
	s.Helper()
	s.Eventually("a CloneSet is created", func() error {
		return client.IgnoreAlreadyExists(s.Client.Create(s.Ctx, &v1beta1.CloneSet{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: metav1.NamespaceDefault},
			Spec: v1beta1.CloneSetSpec{CloneSetBaseSpec: v1beta1.CloneSetBaseSpec{
				Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:alpine"}}},
				},
			}},
		}))
	})
	s.haveReplicas(replicas)
}

// haveReplicas waits until the CloneSet has counted that many Pods.
func (s *stage) haveReplicas(n int) {
	s.Helper()
	s.Eventually(fmt.Sprintf("the CloneSet has %d Pods", n), func() error {
		var set v1beta1.CloneSet
		if err := s.Client.Get(s.Ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "web"}, &set); err != nil {
			return err
		}
		if got := len(s.pods()); got != n || int(set.Status.Replicas) != n {
			return fmt.Errorf("it has %d, and its status says %d", got, set.Status.Replicas)
		}
		return nil
	})
}

func (s *stage) pods() map[string]types.UID {
	s.Helper()
	var all corev1.PodList
	s.Must(s.Client.List(s.Ctx, &all, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": "web"}))
	out := map[string]types.UID{}
	for i := range all.Items {
		out[all.Items[i].Name] = all.Items[i].UID
	}
	return out
}

// scale changes the number of replicas of the CloneSet.
func (s *stage) scale(replicas int) {
	s.Helper()
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: metav1.NamespaceDefault}}
	s.Eventually("the CloneSet is scaled", func() error {
		return s.Client.Patch(s.Ctx, set, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas)))
	})
}

// guard does what a node would for the Job of an uninstall: it runs the container's command with the account of the Job, whose rights are
// those that the chart gives, and records how it ended. It returns what the command said.
func (s *stage) guard() string {
	s.Helper()
	var job batchv1.Job
	key := client.ObjectKey{Namespace: managers, Name: "kruise-uninstall-guard"}
	s.Eventually("Helm makes the Job", func() error {
		if err := s.Client.Get(s.Ctx, key, &job); err != nil {
			return err
		}
		if len(job.Status.Conditions) > 0 {
			return errors.New("it is that of an earlier uninstall")
		}
		return nil
	})
	spec := job.Spec.Template.Spec
	kubeconfig := filepath.Join(s.Dir, "guard.kubeconfig")
	s.Must(s.AccountKubeconfig(s.Ctx, types.NamespacedName{Namespace: managers, Name: spec.ServiceAccountName}, kubeconfig))
	program, err := cluster.Binary("kruise-manager")
	s.Must(err)
	if got := strings.Join(spec.Containers[0].Command, " "); got != "/manager check-uninstall" {
		s.Fatalf("the Job runs %q", got)
	}
	cmd := exec.CommandContext(s.Ctx, program, spec.Containers[0].Command[1], "--kubeconfig", kubeconfig)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	failed := cmd.Run() != nil
	now := metav1.NewTime(time.Now())
	job.Status = batchv1.JobStatus{StartTime: &now}
	conditions := []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}
	if failed {
		job.Status.Failed, conditions = 1, []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}
	} else {
		job.Status.Succeeded, job.Status.CompletionTime = 1, &now
	}
	for _, kind := range conditions {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now, Reason: "Ended", Message: "by the test",
		})
	}
	s.Must(s.Client.Status().Update(s.Ctx, &job))
	return said.String()
}

// uninstall runs helm uninstall, and the guard meanwhile.
func (s *stage) uninstall() (said string, err error) {
	s.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := s.helm("uninstall")
		done <- err
	}()
	said = s.guard()
	return said, <-done
}

// TestAnUninstallLeavesWhatIsInUse: Helm refuses as long as a CloneSet has Pods; whoever insists keeps CloneSet and Pods, and a chart that is
// installed again takes both over as they are.
func TestAnUninstallLeavesWhatIsInUse(t *testing.T) {
	s := newStage(t)
	_, err := s.helm("install")
	s.Must(err)
	s.Must(client.IgnoreAlreadyExists(s.Client.Create(s.Ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}})))
	m := s.manage("first")
	s.roll(3)

	t.Log("the guard refuses, and nothing is gone")
	said, err := s.uninstall()
	if err == nil || !strings.Contains(said, "CloneSet default/web (Pods: 3)") || !strings.Contains(said, "helm uninstall --no-hooks") {
		t.Errorf("helm uninstall ended with %v, and the guard said %q", err, said)
	}
	// Helm has recorded that the release is being uninstalled.
	_, err = s.Helm(s.Ctx, "rollback", "kruise", "1", "--namespace", managers)
	s.Must(err)
	_, err = s.helm("upgrade")
	s.Must(err)
	s.scale(4)
	s.haveReplicas(4)
	pods := s.pods()

	t.Log("who insists keeps CloneSet and Pods")
	out, err := s.helm("uninstall", "--no-hooks")
	s.Must(err)
	if !strings.Contains(out, "clonesets.apps.kruise.io") {
		t.Errorf("Helm does not say that it keeps the CRDs:\n%s", out)
	}
	m.Stop()
	if got := s.pods(); !maps.Equal(got, pods) {
		t.Errorf("Pods are %v, want %v", got, pods)
	}
	s.scale(3) // no webhook is asked any more
	left, err := s.Kubectl(s.Ctx, "get", "deployments,daemonsets,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,"+
		"validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings", "-A", "-o", "name")
	s.Must(err)
	if strings.Contains(left, "kruise") {
		t.Errorf("these are left:\n%s", left)
	}

	t.Log("a chart that is installed again takes them over")
	_, err = s.helm("install")
	s.Must(err)
	s.manage("second")
	s.haveReplicas(3)
	for name, uid := range s.pods() {
		if pods[name] != uid {
			t.Errorf("Pod %s is another one", name)
		}
	}

	t.Log("the guard lets go what is not in use")
	s.scale(0)
	s.haveReplicas(0)
	if said, err = s.uninstall(); err != nil || !strings.Contains(said, "Nothing is in use") {
		t.Errorf("helm uninstall ended with %v, and the guard said %q", err, said)
	}
	if err := s.Client.Get(s.Ctx, client.ObjectKey{Namespace: managers, Name: "kruise-uninstall-guard"}, &batchv1.Job{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Job of the guard is left: %v", err)
	}
	if err := s.Client.Get(s.Ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "web"}, &v1beta1.CloneSet{}); err != nil {
		t.Errorf("the CloneSet: %v", err)
	}
}

// keepsWhatManagersWrite upgrades: CRDs and webhook configurations keep what managers have written into them. Without the CA, and without
// the webhooks for Pods, requests that come during an upgrade would be refused, or Pods left without their sidecars.
func (s *stage) keepsWhatManagersWrite() {
	s.Helper()
	_, err := s.helm("install")
	s.Must(err)
	s.Must(s.Client.Create(s.Ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: managers, Name: "kruise-webhook-certs"}}))
	s.manage("manager").Stop() // none that could restore anything
	const added = `[{"op": "add", "path": "/webhooks/-", "value": {"name": "mpods.example.com", "admissionReviewVersions": ["v1"],
"sideEffects": "None", "clientConfig": {"url": "https://localhost:1/"}, "namespaceSelector": {"matchLabels": {"none": "such"}},
"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}}]`
	_, err = s.Kubectl(s.Ctx, "patch", "mutatingwebhookconfiguration", "kruise-mutating-webhook-configuration", "--type=json", "-p", added)
	s.Must(err)
	before := s.written()
	_, err = s.helm("upgrade", "--set", "manager.replicas=3,webhookConfiguration.timeoutSeconds=7,externalCerts.annotations.team=platform")
	s.Must(err)
	after := s.written()
	if len(before) < 30 || !maps.Equal(before, after) {
		s.Errorf("CAs and webhooks were\n%v\nand are\n%v", before, after)
	}
	got, err := s.Kubectl(s.Ctx, "get", "mutatingwebhookconfiguration", "kruise-mutating-webhook-configuration", "-o",
		"jsonpath={.webhooks[0].timeoutSeconds} {.metadata.annotations.team}")
	if err != nil || got != "7 platform" {
		s.Errorf("after the upgrade, timeout and annotation are %q: %v", got, err)
	}
}

// written returns the CA of each webhook and each CRD, by name.
func (s *stage) written() map[string]string {
	s.Helper()
	out, err := s.Kubectl(s.Ctx, "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations,crds", "-o", "json")
	s.Must(err)
	type server struct{ CABundle string }
	var all struct {
		Items []struct {
			Metadata struct{ Name string }
			Webhooks []struct {
				Name         string
				ClientConfig server
			}
			Spec struct {
				Conversion struct {
					Webhook struct{ ClientConfig server }
				}
			}
		}
	}
	s.Must(json.Unmarshal([]byte(out), &all))
	cas := map[string]string{}
	for _, item := range all.Items {
		for _, w := range item.Webhooks {
			cas[item.Metadata.Name+" "+w.Name] = w.ClientConfig.CABundle
		}
		if ca := item.Spec.Conversion.Webhook.ClientConfig.CABundle; ca != "" {
			cas[item.Metadata.Name] = ca
		}
	}
	return cas
}
