package defaulting

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/internal/defaults"
)

// ask sends a request as the API server does, and returns the answer.
func ask(version string, operation admissionv1.Operation, object, old []byte) admission.Response {
	hook := &webhook.Admission{Handler: CloneSet(defaults.Options{})}
	return hook.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Operation: operation, Kind: metav1.GroupVersionKind{Group: "apps.kruise.io", Version: version, Kind: "CloneSet"},
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
	}})
}

func TestThePatchHoldsOnlyDefaults(t *testing.T) {
	const rest = `{"op":"add","path":"/spec/replicas","value":1},{"op":"add","path":"/spec/revisionHistoryLimit","value":10},`
	const pod = `{"op":"add","path":"/spec/template/spec/dnsPolicy","value":"ClusterFirst"},{"op":"add","path":"/spec/template/spec/restartPolicy","value":"Always"},
		{"op":"add","path":"/spec/template/spec/schedulerName","value":"default-scheduler"},{"op":"add","path":"/spec/template/spec/securityContext","value":{}},
		{"op":"add","path":"/spec/template/spec/terminationGracePeriodSeconds","value":30}`
	const recreate = `{"op":"add","path":"/spec/updateStrategy","value":{"type":"RollingUpdate","rollingUpdate":{"podUpdatePolicy":"ReCreate","partition":0,"maxUnavailable":"20%","maxSurge":0}}}`
	for name, tc := range map[string]struct {
		version, object, old, want string
	}{
		"fields of the future stay": {
			version: "v1beta1",
			object: `{"metadata":{"name":"web"},"spec":{"replicas":2,"revisionHistoryLimit":3,"template":{"future":{"a":1},"spec":{"future":[1],"dnsPolicy":"None","restartPolicy":"Always",
				"schedulerName":"mine","securityContext":{"future":true},"terminationGracePeriodSeconds":0,
				"containers":[{"name":"a","image":"a","future":"x","resources":{"limits":{"cpu":"0.50"}}}]}},"updateStrategy":{"type":"OnDelete"}}}`,
			want: `[{"op":"replace","path":"/spec/template/spec/containers","value":[{"name":"a","image":"a","future":"x",
				"resources":{"limits":{"cpu":"0.50"}},"imagePullPolicy":"Always",
				"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}]}]`,
		},
		"what is missing as a whole is added as a whole": {
			version: "v1beta1",
			object:  `{"spec":{"template":{"spec":{"containers":[]}}}}`,
			want:    `[` + rest + pod + `,` + recreate + `]`,
		},
		"a null is filled like nothing": {
			version: "v1beta1",
			object:  `{"spec":{"replicas":null,"revisionHistoryLimit":1,"template":{"spec":{"containers":null}},"updateStrategy":null}}`,
			want:    `[{"op":"add","path":"/spec/replicas","value":1},` + pod + `,` + recreate + `]`,
		},
		"the older version has its own fields": {
			version: "v1alpha1",
			object:  `{"spec":{"template":{"spec":{"containers":[]}},"updateStrategy":{"type":"InPlaceOnly"}}}`,
			want: `[` + rest + pod + `,{"op":"add","path":"/spec/updateStrategy/inPlaceUpdateStrategy","value":{}},{"op":"add","path":"/spec/updateStrategy/maxSurge","value":0},
				{"op":"add","path":"/spec/updateStrategy/maxUnavailable","value":"20%"},{"op":"add","path":"/spec/updateStrategy/partition","value":0}]`,
		},
		"an unchanged template stays as it is": {
			version: "v1beta1",
			object:  `{"spec":{"replicas":2,"revisionHistoryLimit":3,"template":{"spec":{"containers":[]}},"updateStrategy":{"type":"OnDelete"}}}`,
			old:     `{"spec":{"template":{"spec":{"containers":[]}}}}`,
			want:    `null`,
		},
		"a finer quantity than the API keeps is rounded": {
			version: "v1beta1",
			object: `{"spec":{"replicas":2,"revisionHistoryLimit":3,"template":{"spec":{"dnsPolicy":"None","restartPolicy":"Always","schedulerName":"mine","securityContext":{},
				"terminationGracePeriodSeconds":0,"containers":null,"overhead":{"example.com/a~b":"1u"}}},"updateStrategy":{"type":"OnDelete"}}}`,
			want: `[{"op":"replace","path":"/spec/template/spec/overhead/example.com~1a~0b","value":"1m"}]`,
		},
		"what is being deleted stays as it is": {
			version: "v1beta1",
			object:  `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{}}`,
			want:    `null`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			header := `{"apiVersion":"apps.kruise.io/` + tc.version + `","kind":"CloneSet",`
			operation, old := admissionv1.Create, []byte(nil)
			if tc.old != "" {
				operation, old = admissionv1.Update, []byte(header+tc.old[1:])
			}
			response := ask(tc.version, operation, []byte(header+tc.object[1:]), old)
			if !response.Allowed {
				t.Fatalf("answered %v", response.Result)
			}
			encoded, err := json.Marshal(response.Patches)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(t, tc.want), parse(t, string(encoded))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func parse(t *testing.T, text string) any {
	t.Helper()
	var out any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

func TestWhatCannotBeReadIsABadRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		version, object string
	}{
		"no JSON":             {"v1beta1", `{`},
		"a field of no sense": {"v1beta1", `{"kind":"CloneSet","spec":{"template":{"spec":{"containers":"none"}}}}`},
		"another version":     {"v2", `{"kind":"CloneSet"}`},
	} {
		t.Run(name, func(t *testing.T) {
			response := ask(tc.version, admissionv1.Create, []byte(tc.object), nil)
			if response.Allowed || response.Result.Code != http.StatusBadRequest {
				t.Errorf("answered allowed=%v %v, want 400", response.Allowed, response.Result)
			}
		})
	}
}

// TestRecordedObjectsNeedNothing: what the original has defaulted is not touched, and so starts no rollout.
func TestRecordedObjectsNeedNothing(t *testing.T) {
	for _, raw := range recorded(t) {
		version := versionOf(t, raw)
		if response := ask(version, admissionv1.Create, raw, nil); !response.Allowed || len(response.Patches) > 0 {
			t.Errorf("answered allowed=%v %v for %s", response.Allowed, response.Patches, raw)
		}
	}
}

func recorded(t testing.TB) []json.RawMessage {
	t.Helper()
	data, err := os.ReadFile("../../convert/testdata/clonesets.json")
	if err != nil {
		t.Fatal(err)
	}
	var objects []json.RawMessage
	if err := json.Unmarshal(data, &objects); err != nil || len(objects) == 0 {
		t.Fatalf("read %d objects: %v", len(objects), err)
	}
	return objects
}

func versionOf(t testing.TB, raw []byte) string {
	t.Helper()
	var header metav1.TypeMeta
	if err := json.Unmarshal(raw, &header); err != nil {
		t.Fatal(err)
	}
	return header.GroupVersionKind().Version
}

// FuzzCloneSet checks that no object makes the handler panic, that its patch applies, and that the outcome needs no further patch.
func FuzzCloneSet(f *testing.F) {
	for _, raw := range recorded(f) {
		f.Add(versionOf(f, raw), []byte(raw))
	}
	f.Fuzz(func(t *testing.T, version string, object []byte) {
		response := ask(version, admissionv1.Create, object, nil)
		if !response.Allowed {
			if response.Result.Code >= http.StatusInternalServerError {
				t.Fatalf("answered %v", response.Result)
			}
			return
		}
		if len(response.Patches) == 0 {
			return
		}
		patch, err := jsonpatch.DecodePatch(response.Patch)
		if err != nil {
			t.Fatal(err)
		}
		patched, err := patch.Apply(object)
		if err != nil {
			t.Fatalf("applying %s: %v", response.Patch, err)
		}
		if again := ask(version, admissionv1.Create, patched, nil); !again.Allowed || len(again.Patches) > 0 {
			t.Errorf("%s\nneeds, after %s,\nanother patch: %v %s", object, response.Patch, again.Allowed, again.Patch)
		}
	})
}
