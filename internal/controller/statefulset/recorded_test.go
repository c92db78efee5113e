package statefulset

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
)

// recorded returns what a cluster of the original held at a moment, as this controller would see it.
func recorded(t *testing.T, moment string) Snapshot {
	t.Helper()
	data, err := os.ReadFile("testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	var moments map[string][]json.RawMessage
	if err := json.Unmarshal(data, &moments); err != nil {
		t.Fatal(err)
	}
	s := Snapshot{
		Now:     time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
		Options: Options{ClaimRetention: true, StartOrdinal: true, InPlace: inplace.Options{EnvFromMetadata: true}},
	}
	for _, raw := range moments[moment] {
		var header metav1.TypeMeta
		decode(t, raw, &header)
		switch header.Kind {
		case "StatefulSet":
			s.Set = &v1beta1.StatefulSet{}
			decode(t, raw, s.Set)
		case "Pod":
			p := &corev1.Pod{}
			decode(t, raw, p)
			s.Pods = append(s.Pods, p)
		case "ControllerRevision":
			rev := &appsv1.ControllerRevision{}
			decode(t, raw, rev)
			s.Revisions = append(s.Revisions, rev)
		}
	}
	return s
}

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

// TestTakingOverFromTheOriginalChangesNothing: with the objects of another cluster in place, nothing is written, and the status stays as it is.
func TestTakingOverFromTheOriginalChangesNothing(t *testing.T) {
	for _, moment := range []string{"created", "updated"} {
		t.Run(moment, func(t *testing.T) {
			s := recorded(t, moment)
			if len(s.Pods) != 3 || len(s.Revisions) == 0 {
				t.Fatalf("read %d Pods and %d revisions", len(s.Pods), len(s.Revisions))
			}
			v := Classify(s)
			p := Plan(v)
			if !p.Empty() || len(p.Holds) > 0 {
				t.Errorf("the plan is\n%s", p)
			}
			if diff := cmp.Diff(s.Set.Status, Status(v, p, apply.Outcome{})); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTakingOverInTheMiddleOfAnUpdateFinishesIt: the original had begun to update Pods in place; what is left to do is written on them.
func TestTakingOverInTheMiddleOfAnUpdateFinishesIt(t *testing.T) {
	s := recorded(t, "updated")
	s.Pods = recorded(t, "midway").Pods
	for _, action := range Plan(Classify(s)).Actions() {
		if action.Verb == "delete" || action.Verb == "create" {
			t.Errorf("it is to %s %s", action.Verb, action.Object().GetName())
		}
	}
}
