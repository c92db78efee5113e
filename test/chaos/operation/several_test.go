package operation

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

func TestTwoManagersStartAtOnceBehindAService(t *testing.T) {
	s := newSite(t, cluster.Options{Bare: true})
	s.Must(s.Install(s.Ctx))
	root, err := cluster.Root()
	s.Must(err)
	s.Must(s.ApplyFile(s.Ctx, filepath.Join(root, "config/webhook/service.yaml")))
	options := cluster.ManagerOptions{
		Env: []string{"WEBHOOK_HOST="}, Args: shortLease(),
	}
	managers := map[string]*cluster.Manager{"a": s.Launch("a", options), "b": s.Launch("b", options)}
	for name, m := range managers {
		s.addEndpoint(name, m.WebhookPort())
	}
	var starting sync.WaitGroup
	for _, m := range managers {
		starting.Go(func() {
			if err := m.WaitReady(s.Ctx); err != nil {
				t.Error(err)
			}
		})
	}
	// While they start, a write may find nobody there yet, but never anybody whom the API server does not trust.
	s.Eventually("a CloneSet is accepted", func() error {
		err := s.tryCreate(0)
		if err != nil && strings.Contains(err.Error(), "x509") {
			t.Fatal(err)
		}
		return err
	})
	starting.Wait()
	if t.Failed() {
		return
	}
	s.Must(s.Client.Get(s.Ctx, client.ObjectKey{Namespace: "kruise-system", Name: "kruise-webhook-certs"}, &corev1.Secret{}))

	t.Log("both serve admission and conversion, and are trusted")
	for n := range 100 {
		s.Must(s.tryCreate(n + 1))
	}
	bundles, err := s.caBundles()
	s.Must(err)
	for name, m := range managers {
		for webhook, bundle := range bundles {
			if err := isTrusted("localhost:"+m.WebhookPort(), bundle); err != nil {
				t.Errorf("manager %s, with the CA of %s: %v", name, webhook, err)
			}
		}
	}
	got, err := s.addresses()
	s.Must(err)
	if want := addressesAt("kruise-system/kruise-webhook-service"); !slices.Equal(got, want) {
		t.Errorf("the API server reaches the managers at %q, want %q", got, want)
	}

	t.Log("one leads; when it ends, the other one goes on")
	s.Must(s.Client.Create(s.Ctx, cloneSet("led", 2)))
	s.havePods("led", 2)
	leader, holder := s.leader(managers)
	managers[leader].Stop()
	s.Must(client.IgnoreNotFound(s.Client.Delete(s.Ctx, s.slice(leader, "1"))))
	set := cloneSet("led", 2)
	s.Eventually("the CloneSet is scaled", func() error {
		return s.Client.Patch(s.Ctx, set, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":5}}`)))
	})
	s.havePods("led", 5)
	if other := s.holder(); other == holder || other == "" {
		t.Errorf("the Lease is held by %q, as before manager %s ended", other, leader)
	}
}

// tryCreate has the API server judge a CloneSet of the older version, which is to be defaulted, validated and converted, and store nothing.
func (s *site) tryCreate(n int) error {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
		"metadata": map[string]any{"name": "tried-" + strconv.Itoa(n), "namespace": metav1.NamespaceDefault},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "tried"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "tried"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "nginx", "image": "nginx:alpine"}}},
			},
		},
	}}
	if err := s.Client.Create(s.Ctx, o, client.DryRunAll); err != nil {
		return err
	}
	update, _, err := unstructured.NestedString(o.Object, "spec", "updateStrategy", "type")
	if err == nil && update != "ReCreate" {
		err = fmt.Errorf("the type of update is defaulted to %q", update)
	}
	return err
}

// slice is what makes a manager one of the Service's endpoints.
func (s *site) slice(name, port string) *discoveryv1.EndpointSlice {
	number, err := strconv.ParseInt(port, 10, 32)
	s.Must(err)
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: "manager-" + name, Namespace: "kruise-system",
			Labels: map[string]string{discoveryv1.LabelServiceName: "kruise-webhook-service"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(number)), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{s.ownAddress()}}},
	}
}

func (s *site) addEndpoint(name, port string) {
	s.Helper()
	s.Must(client.IgnoreAlreadyExists(s.Client.Create(s.Ctx, s.slice(name, port))))
}

// isTrusted checks that a server presents a certificate of the Service that the CA vouches for.
func isTrusted(address string, bundle []byte) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return errors.New("there is no CA")
	}
	connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, ServerName: "kruise-webhook-service.kruise-system.svc"})
	if err != nil {
		return err
	}
	return connection.Close()
}

// ownAddress returns an address of this machine other than loopback, which no EndpointSlice may hold.
func (s *site) ownAddress() string {
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

func (s *site) havePods(app string, number int) {
	s.Helper()
	s.Eventually(fmt.Sprintf("%s has %d Pods", app, number), func() error {
		if got := len(s.pods(app)); got != number {
			return fmt.Errorf("it has %d", got)
		}
		return nil
	})
}

// leader returns the name of the manager whose controllers run, and the holder of the Lease.
func (s *site) leader(managers map[string]*cluster.Manager) (name, holder string) {
	s.Helper()
	var leading []string
	for name, m := range managers {
		if startsWorkers(m.Tail(1000)) {
			leading = append(leading, name)
		}
	}
	if len(leading) != 1 {
		s.Fatalf("the controllers of managers %v run, want those of one", leading)
	}
	return leading[0], s.holder()
}

// startsWorkers reports whether a log says that the controller of CloneSets runs, which it does on the leader only.
func startsWorkers(log string) bool {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "Starting workers") && strings.Contains(line, "cloneset") {
			return true
		}
	}
	return false
}

func (s *site) holder() string {
	s.Helper()
	var lease coordinationv1.Lease
	s.Must(s.Client.Get(s.Ctx, client.ObjectKey{Namespace: "kruise-system", Name: "kruise-manager"}, &lease))
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
