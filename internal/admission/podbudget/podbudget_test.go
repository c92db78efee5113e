package podbudget

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/refusal"
	"github.com/seed-69ecc383/kruise/internal/disruption"
)

// fakeEvaluator gives one decision and notes what it was asked.
type fakeEvaluator struct {
	decision disruption.Decision
	err      error
	asked    []disruption.Request
}

func (j *fakeEvaluator) Evaluate(_ context.Context, r disruption.Request) (disruption.Decision, error) {
	j.asked = append(j.asked, r)
	return j.decision, j.err
}

func webPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "u", Annotations: map[string]string{keys.RelatedBudget: "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:1"}}},
	}
}

func raw(t *testing.T, object any) runtime.RawExtension {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: text}
}

func TestWhatIsEvaluated(t *testing.T) {
	updated := webPod()
	updated.Spec.Containers[0].Image = "nginx:2"
	const deletion, eviction, update = v1beta1.PubDeleteOperation, v1beta1.PubEvictOperation, v1beta1.PubUpdateOperation
	type request = admissionv1.AdmissionRequest
	for name, tc := range map[string]struct {
		request request
		off     bool
		within  string
		want    v1beta1.PubOperation
		dryRun  bool
	}{
		"a deletion":                        {request: request{Operation: admissionv1.Delete, OldObject: raw(t, webPod())}, want: deletion},
		"a dry run":                         {request: request{Operation: admissionv1.Delete, OldObject: raw(t, webPod()), DryRun: new(true)}, want: deletion, dryRun: true},
		"a deletion with the gate off":      {request: request{Operation: admissionv1.Delete, OldObject: raw(t, webPod())}, off: true},
		"a deletion in another namespace":   {request: request{Operation: admissionv1.Delete, OldObject: raw(t, webPod())}, within: "other"},
		"an update":                         {request: request{Operation: admissionv1.Update, OldObject: raw(t, webPod()), Object: raw(t, updated)}, want: update},
		"an update with the gate off":       {request: request{Operation: admissionv1.Update, OldObject: raw(t, webPod()), Object: raw(t, updated)}, off: true},
		"an update of nothing that matters": {request: request{Operation: admissionv1.Update, OldObject: raw(t, webPod()), Object: raw(t, webPod())}},
		"an update of the status":           {request: request{Operation: admissionv1.Update, SubResource: "status", OldObject: raw(t, webPod()), Object: raw(t, updated)}},
		"an eviction":                       {request: request{Operation: admissionv1.Create, SubResource: "eviction", Object: raw(t, map[string]any{})}, want: eviction},
		"an eviction with the gate off":     {request: request{Operation: admissionv1.Create, SubResource: "eviction", Object: raw(t, map[string]any{})}, off: true},
		"a dry run of an eviction": {
			request: request{Operation: admissionv1.Create, SubResource: "eviction", Object: raw(t, map[string]any{"deleteOptions": map[string]any{"dryRun": []string{"All"}}})},
			want:    eviction, dryRun: true,
		},
		"an eviction of a Pod that is not there": {request: request{Operation: admissionv1.Create, SubResource: "eviction", Name: "gone", Object: raw(t, map[string]any{})}},
	} {
		t.Run(name, func(t *testing.T) {
			j := &fakeEvaluator{}
			live := fake.NewClientBuilder().WithObjects(webPod()).Build()
			handler := Handler(Options{Evaluator: j, Live: live, Deletes: !tc.off, Updates: !tc.off, Within: tc.within})
			tc.request.Namespace = "shop"
			if tc.request.Name == "" {
				tc.request.Name = "web-0"
			}
			tc.request.UserInfo = authenticationv1.UserInfo{Username: "me"}
			if response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: tc.request}); !response.Allowed {
				t.Errorf("refused: %v", response.Result)
			}
			if (len(j.asked) == 1) != (tc.want != "") || len(j.asked) > 1 {
				t.Fatalf("asked %d times, want it for %q", len(j.asked), tc.want)
			}
			if tc.want == "" {
				return
			}
			if got := j.asked[0]; got.Operation != tc.want || got.DryRun != tc.dryRun || got.User != "me" || got.Pod.Name != "web-0" ||
				got.Unverified != (tc.want != eviction) {
				t.Errorf("asked %+v, want %s", got, tc.want)
			}
		})
	}
}

func budgetOf(desired, current int32) *v1beta1.PodUnavailableBudget {
	return &v1beta1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Status:     v1beta1.PodUnavailableBudgetStatus{DesiredAvailable: desired, CurrentAvailable: current},
	}
}

func TestAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		operation v1beta1.PubOperation
		decision  disruption.Decision
		code      int32
		reason    metav1.StatusReason
		retry     int32
		says      []string
	}{
		"a deletion": {
			operation: v1beta1.PubDeleteOperation, decision: disruption.Decision{Refused: disruption.Budget}, code: 403, reason: metav1.StatusReasonForbidden,
			says: []string{"pub unavailable allowed is negative", "PodUnavailableBudget web", "needs 3 available Pods, has 3", "pub.kruise.io/no-protect=true", "change the budget"},
		},
		"an eviction": {
			operation: v1beta1.PubEvictOperation, decision: disruption.Decision{Refused: disruption.Budget}, code: 429, reason: metav1.StatusReasonTooManyRequests, retry: 10,
			says: []string{"pub unavailable allowed is negative"},
		},
		"too much that is not confirmed": {
			operation: v1beta1.PubDeleteOperation, decision: disruption.Decision{Refused: disruption.LedgerFull}, code: 403, reason: metav1.StatusReasonForbidden,
			says: []string{"too many unavailable not confirmed"},
		},
		"too many writers": {
			operation: v1beta1.PubDeleteOperation, decision: disruption.Decision{Refused: disruption.Contended}, code: 403, reason: metav1.StatusReasonForbidden, says: []string{"timed out"},
		},
		"a PodDisruptionBudget": {
			operation: v1beta1.PubEvictOperation, decision: disruption.Decision{Refused: disruption.Kubernetes, PodDisruptionBudget: "k"}, code: 429,
			reason: metav1.StatusReasonTooManyRequests, retry: 10, says: []string{"PodDisruptionBudget k"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.decision.Budget = budgetOf(3, 3)
			s := denial(&disruption.Request{Pod: webPod(), Operation: tc.operation}, tc.decision)
			if s.Code != tc.code || s.Reason != tc.reason || s.Details.RetryAfterSeconds != tc.retry {
				t.Errorf("code %d, reason %s, details %+v", s.Code, s.Reason, s.Details)
			}
			for _, text := range tc.says {
				if !strings.Contains(s.Message, text) {
					t.Errorf("%q does not say %q", s.Message, text)
				}
			}
		})
	}
	cause := denial(&disruption.Request{Pod: webPod()}, disruption.Decision{Refused: disruption.Budget, Budget: budgetOf(3, 2)}).Details.Causes
	if diff := cmp.Diff([]metav1.StatusCause{{Type: "DisruptionBudget", Message: "The budget web needs 3 available pods and has 2 currently"}}, cause); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

// TestOurOwnErrorsAreNoRefusals: 500 with the cause.
func TestOurOwnErrorsAreNoRefusals(t *testing.T) {
	handler := Handler(Options{Evaluator: &fakeEvaluator{err: errors.New("no answer")}, Deletes: true})
	response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: raw(t, webPod())}})
	if response.Allowed || response.Result.Code != 500 || !strings.Contains(response.Result.Message, "no answer") {
		t.Errorf("response %+v", response.Result)
	}
}

// TestRefusalsAreTold, each in the metric and the log, but not each in an event.
func TestRefusalsAreTold(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(1_800_000_000, 0)
	protection, err := refusal.OpenLog(dir, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	events := record.NewFakeRecorder(10)
	registry := prometheus.NewRegistry()
	reports, err := NewReports(ReportOptions{Registry: registry, Events: events, Log: protection, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	decision := disruption.Decision{Refused: disruption.Budget, Budget: budgetOf(3, 3)}
	for _, operation := range []v1beta1.PubOperation{v1beta1.PubUpdateOperation, v1beta1.PubDeleteOperation, v1beta1.PubEvictOperation} {
		reports.denied(&disruption.Request{Pod: webPod(), Operation: operation, User: "me"}, decision, "no")
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || len(families[0].Metric) != 1 {
		t.Fatalf("metrics %v, %v", families, err)
	}
	if m := families[0].Metric[0]; m.Counter.GetValue() != 3 || m.Label[0].GetValue() != "PodUnavailableBudget_shop_web" || m.Label[1].GetValue() != "me" {
		t.Errorf("the metric says %v", m)
	}
	if n := len(events.Events); n != 1 {
		t.Errorf("%d events", n)
	}
	now = now.Add(time.Minute)
	reports.denied(&disruption.Request{Pod: webPod(), Operation: v1beta1.PubDeleteOperation, User: "me"}, decision, "no")
	if n := len(events.Events); n != 2 {
		t.Errorf("%d events after a while", n)
	}
	text, err := os.ReadFile(filepath.Join(dir, "protection.log"))
	if err != nil {
		t.Fatal(err)
	}
	const line = `{"Event":"PUB","Kind":"PodUnavailableBudget","Namespace":"shop","Name":"web","UserAgent":"me"}` + "\n"
	if diff := cmp.Diff(strings.Repeat(line, 4), string(text)); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}
