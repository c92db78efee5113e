package protection

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seed-69ecc383/kruise/internal/admission/refusal"
)

func web(value string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "u", Labels: map[string]string{label: value},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "App", Name: "all", UID: "a"}},
	}}
}

// TestReport: each refusal is counted and logged, the event comes once a minute, and only on an object that is there.
func TestReport(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(1_800_000_000, 0)
	log, err := refusal.OpenLog(dir, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	events, registry := record.NewFakeRecorder(10), prometheus.NewRegistry()
	live := fake.NewClientBuilder().WithObjects(web("Always"), shop("Cascading")).Build()
	reports, err := NewReports(ReportOptions{Registry: registry, Events: events, Log: log, Live: live, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Live: &api{t: t, objects: busy([]object{{phase: "Running"}}, nil)}, Reports: reports}
	dry, madeUp := deployments.deletion(t, web("Always")), web("Always")
	dry.DryRun, madeUp.UID = new(true), "another"
	for range 2 {
		said(t, Report(o).Handle(t.Context(), deployments.deletion(t, web("Always"))))
	}
	now = now.Add(time.Minute)
	said(t, Report(o).Handle(t.Context(), dry))
	said(t, Report(o).Handle(t.Context(), deployments.deletion(t, madeUp)))
	said(t, Report(o).Handle(t.Context(), deployments.deletion(t, web("never"))))
	idle := web("Cascading")
	idle.Spec.Replicas = new(int32(0))
	said(t, Report(o).Handle(t.Context(), deployments.deletion(t, idle)))
	said(t, Namespace(o).Handle(t.Context(), namespaces.deletion(t, shop("Cascading"))))

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			got[family.GetName()+" "+m.Label[0].GetValue()+" "+m.Label[1].GetValue()] = m.Counter.GetValue()
		}
	}
	want := map[string]float64{"workload_deletion_protection Deployment_shop_web me": 4, "namespace_deletion_protection shop me": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(filepath.Join(dir, "protection.log"))
	if err != nil {
		t.Fatal(err)
	}
	line := `{"Event":"DeletionProtection","Kind":"Deployment","Namespace":"shop","Name":"web","UserAgent":"me"}` + "\n"
	last := `{"Event":"DeletionProtection","Kind":"Namespace","Namespace":"","Name":"shop","UserAgent":"me"}` + "\n"
	if diff := cmp.Diff(strings.Repeat(line, 4)+last, string(text)); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
	if n := len(events.Events); n != 2 { // one on the Deployment and one on the namespace
		t.Fatalf("%d events, want 2", n)
	}
	const event = "Warning DeletionBlocked me asked for the deletion: forbidden by ResourcesProtectionDeletion for " +
		"policy.kruise.io/delete-protection=Always; it is owned by App all"
	if got := <-events.Events; got != event {
		t.Errorf("the event is %q", got)
	}
}

// TestMetricOfEachKind: those of the original for what it protects.
func TestMetricOfEachKind(t *testing.T) {
	for kind, want := range map[string]string{
		"/v1, Kind=Namespace": "namespace", "/v1, Kind=Service": "service", "/v1, Kind=Secret": "object",
		"apiextensions.k8s.io/v1, Kind=CustomResourceDefinition": "crd", "networking.k8s.io/v1, Kind=Ingress": "ingress",
		"apps/v1, Kind=Deployment": "workload", "batch/v1, Kind=Job": "workload", "apps.kruise.io/v1beta1, Kind=CloneSet": "workload",
		"policy.kruise.io/v1beta1, Kind=PodUnavailableBudget": "object",
	} {
		gv, name, _ := strings.Cut(kind, ", Kind=")
		group, version, _ := strings.Cut(gv, "/")
		if got := counterOf(metav1.GroupVersionKind{Group: group, Version: version, Kind: name}); got != want {
			t.Errorf("%s is counted by %q, want %q", kind, got, want)
		}
	}
}
