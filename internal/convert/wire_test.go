package convert

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	hubVersion   = "apps.kruise.io/v1beta1"
	spokeVersion = "apps.kruise.io/v1alpha1"
)

// recorded are CloneSets as a live cluster of the original served them, each in both versions.
func recorded(t *testing.T) map[string]map[string]*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile("testdata/clonesets.json")
	if err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	if err := json.Unmarshal(data, &objects); err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]*unstructured.Unstructured{}
	for _, object := range objects {
		u := parse(t, object)
		key := u.GetName() + " at generation " + string(rune('0'+u.GetGeneration()))
		if out[key] == nil {
			out[key] = map[string]*unstructured.Unstructured{}
		}
		out[key][u.GetAPIVersion()] = u
	}
	return out
}

func parse(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestObjectsOfTheOriginalConvertAsItDid(t *testing.T) {
	for name, versions := range recorded(t) {
		if len(versions) != 2 {
			t.Errorf("%s is there in %d versions, want 2", name, len(versions))
		}
		for from, src := range versions {
			for to, want := range versions {
				if from == to {
					continue
				}
				t.Run(name+" to "+to, func(t *testing.T) {
					got, err := Object(src, to)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want.Object, got.Object); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

func TestObjectKeepsWhatItDoesNotKnow(t *testing.T) {
	src := parse(t, map[string]any{
		"apiVersion": spokeVersion, "kind": "CloneSet",
		"metadata": map[string]any{"name": "web", "fieldOfTheFuture": "kept"},
		"spec": map[string]any{
			"template":      map[string]any{"metadata": map[string]any{"creationTimestamp": nil}, "spec": map[string]any{"fieldOfTheFuture": 1, "containers": "not even a list"}},
			"scaleStrategy": map[string]any{"disablePVCReuse": true},
		},
		"status": map[string]any{"replicas": 3},
	})
	hub, err := Object(src, hubVersion)
	if err != nil {
		t.Fatal(err)
	}
	want := parse(t, map[string]any{
		"apiVersion": hubVersion, "kind": "CloneSet",
		"metadata": map[string]any{"name": "web", "fieldOfTheFuture": "kept"},
		"spec": map[string]any{
			"template":      map[string]any{"metadata": map[string]any{"creationTimestamp": nil}, "spec": map[string]any{"fieldOfTheFuture": 1, "containers": "not even a list"}},
			"scaleStrategy": map[string]any{"enablePVCReuse": false},
			"updateStrategy": map[string]any{
				"type": "RollingUpdate", "rollingUpdate": map[string]any{"podUpdatePolicy": "ReCreate"},
			},
		},
		"status": map[string]any{"replicas": 3},
	})
	if diff := cmp.Diff(want.Object, hub.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHandler(t *testing.T) {
	object := func(version string) string {
		return `{"apiVersion":"` + version + `","kind":"CloneSet","metadata":{"name":"web"},"spec":{"updateStrategy":{}}}`
	}
	for name, tc := range map[string]struct {
		objects    []string
		to         string
		wantStatus string
		wantText   string
	}{
		"objects are converted in their order": {
			objects: []string{object(spokeVersion), object(spokeVersion)}, to: hubVersion, wantStatus: "Success", wantText: `"type":"RollingUpdate"`,
		},
		"an unknown version fails all": {
			objects: []string{object("apps.kruise.io/v1")}, to: hubVersion, wantStatus: "Failure", wantText: "there is no conversion from apps.kruise.io/v1",
		},
		"a list in the place of a map fails": {
			objects: []string{`{"apiVersion":"` + spokeVersion + `","kind":"CloneSet","spec":{"updateStrategy":[]}}`}, to: hubVersion,
			wantStatus: "Failure", wantText: "converting CloneSet",
		},
		"what is no object fails": {objects: []string{`[]`}, to: hubVersion, wantStatus: "Failure", wantText: "reading object 0"},
	} {
		t.Run(name, func(t *testing.T) {
			review := apiextensionsv1.ConversionReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"},
				Request:  &apiextensionsv1.ConversionRequest{UID: "7", DesiredAPIVersion: tc.to},
			}
			for _, raw := range tc.objects {
				review.Request.Objects = append(review.Request.Objects, runtime.RawExtension{Raw: []byte(raw)})
			}
			body, err := json.Marshal(review)
			if err != nil {
				t.Fatal(err)
			}
			code, answer := post(t, body)
			var got apiextensionsv1.ConversionReview
			if err := json.Unmarshal(answer, &got); err != nil || code != http.StatusOK {
				t.Fatalf("answered %d %s: %v", code, answer, err)
			}
			if got.Response == nil || got.Response.UID != "7" || got.Response.Result.Status != tc.wantStatus || !strings.Contains(string(answer), tc.wantText) {
				t.Errorf("answered %s, want %s with %s", answer, tc.wantStatus, tc.wantText)
			}
		})
	}
}

func post(t testing.TB, body []byte) (code int, answer []byte) {
	t.Helper()
	recorder := httptest.NewRecorder()
	Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body)))
	return recorder.Code, recorder.Body.Bytes()
}

func FuzzHandler(f *testing.F) {
	f.Add([]byte(`{"request":{"uid":"1","desiredAPIVersion":"apps.kruise.io/v1beta1","objects":[{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet"}]}}`))
	f.Add([]byte(`{"request":{"desiredAPIVersion":"apps.kruise.io/v1alpha1","objects":[{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","spec":{"updateStrategy":null}}]}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if code, answer := post(t, body); code != http.StatusOK && code != http.StatusBadRequest {
			t.Errorf("answered %d %s", code, answer)
		}
	})
}
