package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// over returns a Rollout, of a style, whose release was over at a time.
func over(style v1beta1.RolloutStrategy, at time.Time) State {
	r := &v1beta1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo", UID: "r"}}
	r.Spec.WorkloadRef = v1beta1.WorkloadReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web"}
	r.Spec.Strategy = style
	common := v1beta1.CommonStatus{ObservedRolloutID: "7"}
	if style.BlueGreen != nil {
		r.Status.BlueGreenStatus = &v1beta1.BlueGreenStatus{CommonStatus: common}
	} else {
		r.Status.CanaryStatus = &v1beta1.CanaryStatus{CommonStatus: common}
	}
	r.Status.Conditions = []v1beta1.RolloutCondition{{Type: v1beta1.ConditionSucceeded, LastTransitionTime: metav1.NewTime(at)}}
	set := &appsv1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	set.Spec.Replicas = ptr.To[int32](3)
	return State{Snapshot: Snapshot{Rollout: r, Objects: steer.Objects{Workload: set}}}
}

// TestTheRecordOfARelease: it holds what the release consisted of, in any style and without traffic, too, trap T16.
func TestTheRecordOfARelease(t *testing.T) {
	at := time.Unix(1e9, 0)
	canary, blueGreen := v1beta1.RolloutStrategy{Canary: &v1beta1.CanaryStrategy{}}, v1beta1.RolloutStrategy{BlueGreen: &v1beta1.BlueGreenStrategy{}}
	route := v1alpha1.NamedData{Name: "web", Data: raw(map[string]any{"hostnames": []string{"a"}})}
	cases := map[string]struct {
		style   v1beta1.RolloutStrategy
		routing RecordedTraffic
		want    string
	}{
		"without traffic": {canary, RecordedTraffic{}, ""},
		"blueGreen":       {blueGreen, RecordedTraffic{}, ""},
		"an HTTPRoute":    {canary, RecordedTraffic{Service: v1alpha1.NamedData{Name: "svc"}, HTTPRoute: route}, `svc HTTPRoute web {"hostnames":["a"]}`},
		"an Ingress":      {canary, RecordedTraffic{Service: v1alpha1.NamedData{Name: "svc"}, Ingress: v1alpha1.NamedData{Name: "gone"}}, "svc Ingress gone "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := over(tc.style, at)
			v.Traffic = tc.routing
			h := v.record()[0].After.(*v1alpha1.RolloutHistory)
			if h.Labels[keys.RolloutName] != "demo" || h.Spec.Rollout.Name != "demo" || h.Spec.Rollout.RolloutID != "7" ||
				!strings.Contains(string(h.Spec.Rollout.Data.Raw), "workloadRef") || h.Spec.Workload.Name != "web" ||
				!strings.Contains(string(h.Spec.Workload.Data.Raw), `"replicas":3`) {
				t.Errorf("the record %+v", h)
			}
			got := h.Spec.Service.Name
			if r := h.Spec.TrafficRouting.Ingress; r != nil {
				got += " Ingress " + r.Name + " " + string(r.Data.Raw)
			}
			if r := h.Spec.TrafficRouting.HTTPRoute; r != nil {
				got += " HTTPRoute " + r.Name + " " + string(r.Data.Raw)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("what leads traffic (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNamesOfRecords: a release has one, and the next one of the same name of its own another one.
func TestNamesOfRecords(t *testing.T) {
	canary, at := v1beta1.RolloutStrategy{Canary: &v1beta1.CanaryStrategy{}}, time.Unix(1e9, 0)
	v, again, later := over(canary, at), over(canary, at), over(canary, at.Add(time.Second))
	if v.historyName() != again.historyName() || v.historyName() == later.historyName() || len(v.historyName()) != len("demo-")+6 {
		t.Errorf("names %s, %s and later %s", v.historyName(), again.historyName(), later.historyName())
	}
	v.Rollout.Name = strings.Repeat("a", 253)
	if h := v.history(); len(h.Name) != 253 || len(h.Labels) > 0 {
		t.Errorf("of a long name, name %d, labels %v", len(h.Name), h.Labels)
	}
	if v.Histories = []*v1alpha1.RolloutHistory{v.history()}; !v.isRecorded() {
		t.Error("the record is not recognised")
	}
}

// TestOldRecordsGo: ten stay, the newest ones.
func TestOldRecordsGo(t *testing.T) {
	v := over(v1beta1.RolloutStrategy{Canary: &v1beta1.CanaryStrategy{}}, time.Unix(1e9, 0))
	for i := range 11 {
		h := &v1alpha1.RolloutHistory{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("h", i), CreationTimestamp: metav1.Unix(int64(i), 0)}}
		v.Histories = append(v.Histories, h)
	}
	var gone []string
	for _, a := range v.record()[1:] {
		if a.Verb == plan.Delete {
			gone = append(gone, a.Before.GetName())
		}
	}
	if diff := cmp.Diff([]string{"h1", "h0"}, gone); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}
