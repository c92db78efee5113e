package patch

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operations "gomodules.xyz/jsonpatch/v2"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestKnown(t *testing.T) {
	cases := map[string]struct {
		before, after string
		want          []string
	}{
		"nothing changes": {`{"spec":{"hostPID":false}}`, `{"spec":{"hostPID":false}}`, nil},
		"an item comes first and another one changes": {
			`{"spec":{"containers":[{"name":"app"}]}}`, `{"spec":{"containers":[{"name":"log"},{"name":"app","image":"x"}]}}`,
			[]string{`{"op":"replace","path":"/spec/containers","value":[{"name":"log","resources":{}},{"name":"app","image":"x","resources":{}}]}`},
		},
		"an item goes": {
			`{"spec":{"volumes":[{"name":"a"},{"name":"b"},{"name":"c"}]}}`, `{"spec":{"volumes":[{"name":"c"}]}}`,
			[]string{`{"op":"replace","path":"/spec/volumes","value":[{"name":"c"}]}`},
		},
		"items change places": {
			`{"spec":{"volumes":[{"name":"a"},{"name":"b"}]}}`, `{"spec":{"volumes":[{"name":"b"},{"name":"a"}]}}`,
			[]string{`{"op":"replace","path":"/spec/volumes","value":[{"name":"b"},{"name":"a"}]}`},
		},
		"an item that was null is set as a whole": {
			`{"spec":{"containers":[null]}}`, `{"spec":{"containers":[{"image":"x"}]}}`,
			[]string{`{"op":"replace","path":"/spec/containers","value":[{"name":"","image":"x","resources":{}}]}`},
		},
		"a list that is null comes": {
			`{"spec":{"hostPID":true,"volumes":null}}`, `{"spec":{"hostPID":true,"volumes":[{"name":"a"}]}}`,
			[]string{`{"op":"add","path":"/spec/volumes","value":[{"name":"a"}]}`},
		},
		"the first field of a struct that may not be there": {
			`{"spec":{"resources":{}}}`, `{"spec":{"resources":{"limits":{"cpu":"1"}}}}`,
			[]string{`{"op":"add","path":"/spec/resources/limits","value":{"cpu":"1"}}`},
		},
		"a further field of a struct that is there": {
			`{"spec":{"resources":{"limits":{"cpu":"1"}}}}`, `{"spec":{"resources":{"limits":{"cpu":"2","memory":"1Gi"}}}}`,
			[]string{
				`{"op":"replace","path":"/spec/resources/limits/cpu","value":"2"}`,
				`{"op":"add","path":"/spec/resources/limits/memory","value":"1Gi"}`,
			},
		},
		"an embedded struct is written beside the other fields": {
			`{"spec":{"volumes":[{"name":"a","emptyDir":{}}]}}`, `{"spec":{"volumes":[{"name":"a","hostPath":{"path":"/"}}]}}`,
			[]string{`{"op":"replace","path":"/spec/volumes","value":[{"name":"a","hostPath":{"path":"/"}}]}`},
		},
		"annotations come, change, go and are empty": {
			`{"metadata":{"annotations":{"a/b":"","c":"1","d":"2"}}}`, `{"metadata":{"annotations":{"c":"","d":"2","e~":""}}}`,
			[]string{
				`{"op":"replace","path":"/metadata/annotations/c","value":""}`, `{"op":"add","path":"/metadata/annotations/e~0","value":""}`,
				`{"op":"remove","path":"/metadata/annotations/a~1b"}`,
			},
		},
		"a field goes": {
			`{"metadata":{"name":"a"},"spec":{"hostPID":true,"hostIPC":true}}`, `{"spec":{"hostIPC":true}}`,
			[]string{`{"op":"remove","path":"/metadata"}`, `{"op":"remove","path":"/spec/hostPID"}`},
		},
		"a pointer to false": {
			`{"spec":{"enableServiceLinks":true}}`, `{"spec":{"enableServiceLinks":false}}`,
			[]string{`{"op":"replace","path":"/spec/enableServiceLinks","value":false}`},
		},
		"items without names that tell them apart": {
			`{"spec":{"containers":[{"name":"a","volumeMounts":[{"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/b"}]}]}}`,
			`{"spec":{"containers":[{"name":"a","volumeMounts":[{"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/c"}]}]}}`,
			[]string{`{"op":"replace","path":"/spec/containers","value":[{"name":"a","resources":{},` +
				`"volumeMounts":[{"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/c"}]}]}`},
		},
		"items without names become more": {
			`{"spec":{"tolerations":[{"key":"a"}]}}`, `{"spec":{"tolerations":[{"key":"b"},{"key":"a"}]}}`,
			[]string{`{"op":"replace","path":"/spec/tolerations","value":[{"key":"b"},{"key":"a"}]}`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			before, after := podIn(t, tc.before), podIn(t, tc.after)
			changes := Known(before, after)
			for _, operation := range changes {
				got = append(got, operation.Json())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			requireLeadsTo(t, []byte(tc.before), changes, after)
		})
	}
}

type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func podIn(t tester, text string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// requireLeadsTo applies operations as the API server does.
func requireLeadsTo(t tester, raw []byte, changes []operations.Operation, want *corev1.Pod) {
	t.Helper()
	encoded, err := Encode(changes)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		t.Fatal(err)
	}
	result, err := patch.Apply(raw)
	if err != nil {
		t.Fatalf("applying %s to %s: %v", encoded, raw, err)
	}
	if got := podIn(t, string(result)); !equality.Semantic.DeepEqual(want, got) {
		t.Fatalf("%s makes of %s (-want +got):\n%s", encoded, raw, cmp.Diff(want, got))
	}
}

// TestKnownLeadsToAfter: the API server, which applies the patch, ends with just what the handler wanted, however a Pod says that it has nothing
// at some place.
func TestKnownLeadsToAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawPod(t, "before"), drawPod(t, "after")
		encoded, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(encoded, &object); err != nil {
			t.Fatal(err)
		}
		for _, fields := range []any{object["metadata"], object["spec"], object["status"]} {
			spellOut(t, fields.(map[string]any))
		}
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		requireLeadsTo(t, raw, Known(podIn(t, string(raw)), after), after)
	})
}

// spellOut writes fields that are not there as null, or takes away empty ones, here and below.
func spellOut(t *rapid.T, fields map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch value := fields[name].(type) {
		case map[string]any:
			if len(value) == 0 && name == "resources" && rapid.Bool().Draw(t, "without "+name) {
				delete(fields, name)
			} else if name == "resources" {
				spellOut(t, value)
			}
		case []any:
			for _, item := range value {
				if item, ok := item.(map[string]any); ok {
					spellOut(t, item)
				}
			}
		}
	}
	for _, name := range []string{"annotations", "env", "volumes", "initContainers", "resources", "limits", "securityContext", "hostPID", "image"} {
		if _, there := fields[name]; !there && rapid.Bool().Draw(t, "null "+name) {
			fields[name] = nil
		}
	}
}

func drawPod(t *rapid.T, label string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Annotations = rapid.MapOfN(rapid.SampledFrom([]string{"a", "b/c", "d~"}), rapid.SampledFrom([]string{"", "x"}), 0, 3).Draw(t, label+" annotations")
	p.Spec.HostPID = rapid.Bool().Draw(t, label+" hostPID")
	if rapid.Bool().Draw(t, label+" has a security context") {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{}
		if rapid.Bool().Draw(t, label+" says who") {
			p.Spec.SecurityContext.RunAsUser = new(int64)
		}
	}
	many := rapid.SampledFrom([]int{3, 20}).Draw(t, label+" most")
	for _, name := range drawNames(t, label+" containers", many) {
		c := corev1.Container{Name: name, Image: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "image")}
		for _, variable := range drawNames(t, label+" env", 3) {
			c.Env = append(c.Env, corev1.EnvVar{Name: variable, Value: rapid.SampledFrom([]string{"", "1"}).Draw(t, "value")})
		}
		if rapid.Bool().Draw(t, "limits") {
			c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse(rapid.SampledFrom([]string{"1", "500m", "2000m"}).Draw(t, "cpu"))}
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	for _, name := range drawNames(t, label+" volumes", many) {
		v := corev1.Volume{Name: name}
		if rapid.Bool().Draw(t, "emptyDir") {
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
	for range rapid.IntRange(0, 2).Draw(t, label+" tolerations") {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key")})
	}
	return p
}

// drawNames draws names, of which two may be the same.
func drawNames(t *rapid.T, label string, most int) []string {
	return rapid.SliceOfN(rapid.StringMatching(`[a-d][a-e]?`), 0, most).Draw(t, label)
}
