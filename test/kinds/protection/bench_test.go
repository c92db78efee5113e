package protection

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// ApplyService makes the Service that the managers are reached by.
func (b *bench) ApplyService() {
	b.Helper()
	root, err := cluster.Root()
	b.Must(err)
	b.Must(b.ApplyFile(b.Ctx, filepath.Join(root, "config", "webhook", "service.yaml")))
}

// launch starts a manager behind the Service, that also judges updates.
func (b *bench) launch(name string) {
	b.Helper()
	m := b.Launch(name, cluster.ManagerOptions{
		Env: []string{"WEBHOOK_HOST="}, Args: []string{"--feature-gates=PodUnavailableBudgetUpdateGate=true,InPlacePodVerticalScaling=true"},
	})
	b.managers = append(b.managers, m)
	number, err := strconv.ParseInt(m.WebhookPort(), 10, 32)
	b.Must(err)
	b.Must(b.Client.Create(b.Ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "manager-" + name, Namespace: "kruise-system", Labels: map[string]string{discoveryv1.LabelServiceName: "kruise-webhook-service"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(number)), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{b.ownAddress()}}},
	}))
}

// ownAddress returns an address of this machine other than loopback, which no EndpointSlice may hold.
func (b *bench) ownAddress() string {
	b.Helper()
	all, err := net.InterfaceAddrs()
	b.Must(err)
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	b.Fatal("this machine has no IPv4 address besides loopback")
	return ""
}

// newNamespace makes a namespace with the account that its Pods get.
func (b *bench) newNamespace() string {
	b.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "judge-"}}
	b.Must(b.Client.Create(b.Ctx, namespace))
	b.Must(b.Client.Create(b.Ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "default"}}))
	return namespace.Name
}

// pods makes Pods named web-0, web-1 and so on that run and are ready, and name the budget web.
func (b *bench) pods(count int, change ...func(*corev1.Pod)) []*corev1.Pod {
	b.Helper()
	var out []*corev1.Pod
	for i := range count {
		p := b.guarded(i)
		for _, c := range change {
			c(p)
		}
		b.Must(b.Client.Create(b.Ctx, p))
		p.Status = readyStatus()
		b.Must(b.Client.Status().Update(b.Ctx, p))
		out = append(out, p)
	}
	return out
}

// guarded returns a Pod that names the budget web.
func (b *bench) guarded(number int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.namespace, Name: fmt.Sprintf("web-%d", number), Labels: map[string]string{"app": "web"},
			Annotations: map[string]string{keys.RelatedBudget: "web", keys.RelatedBudgetOld: "web"},
		},
		Spec: corev1.PodSpec{
			NodeName: "sim", TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{Name: "main", Image: "nginx:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}},
		},
	}
}

func readyStatus() corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
	}}
}

// budget makes the budget web, of the Pods of application web, and waits until so many may become unavailable.
func (b *bench) budget(allowed int32, spec string) {
	b.Helper()
	budget := &v1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "web"}}
	b.Must(yaml.UnmarshalStrict([]byte(spec), &budget.Spec))
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	b.Must(b.Client.Create(b.Ctx, budget))
	b.allows(allowed)
}

// allows waits until the budget says that so many Pods may become unavailable.
func (b *bench) allows(want int32) {
	b.Helper()
	b.Eventually("the budget is in force", func() error {
		if s := b.status(); s.ObservedGeneration == 0 || s.UnavailableAllowed != want {
			return fmt.Errorf("its status is %+v, want %d allowed", s, want)
		}
		return nil
	})
}

func (b *bench) status() v1beta1.PodUnavailableBudgetStatus {
	b.Helper()
	budget := &v1beta1.PodUnavailableBudget{}
	b.Must(b.Client.Get(b.Ctx, client.ObjectKey{Namespace: b.namespace, Name: "web"}, budget))
	return budget.Status
}

func (b *bench) evict(name string) error {
	return b.plain.CoreV1().RESTClient().Post().Namespace(b.namespace).Resource("pods").Name(name).SubResource("eviction").MaxRetries(0).
		Body(&policyv1.Eviction{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
			ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		}).Do(b.Ctx).Error()
}

// refusedBy complains unless the error is the refusal of a deletion or an update by the budget.
func refusedBy(err error, texts ...string) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("it is not forbidden: %w", err)
	}
	for _, text := range append(texts, "pub unavailable allowed is negative", "PodUnavailableBudget web", keys.NoProtect) {
		if !strings.Contains(err.Error(), text) {
			return fmt.Errorf("its text does not say %q: %w", text, err)
		}
	}
	return nil
}
