package revision

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/build"
)

// sample returns the bytes of a defaulted template of one container, as clusters store them.
func sample(image, pullPolicy string) string {
	return `{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"sample"}},"spec":{"containers":[{"image":"` +
		image + `","imagePullPolicy":"` + pullPolicy + `","name":"nginx","resources":{},"terminationMessagePath":"/dev/termination-log",` +
		`"terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler",` +
		`"securityContext":{},"terminationGracePeriodSeconds":30}}}}`
}

func TestHash(t *testing.T) {
	cases := map[string]struct {
		image, pullPolicy string
		collisionCount    int32
		want              string
	}{
		"the first image of the manual":  {"nginx:alpine", "Always", 0, "d4d4fb5bd"},
		"the second image of the manual": {"nginx:mainline", "Always", 0, "56dfb978d4"},
		"another pull policy":            {"nginx:alpine", "IfNotPresent", 0, "c6b87f574"},
		"the same after a collision":     {"nginx:alpine", "IfNotPresent", 1, "c6b87f575"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stored := sample(tc.image, tc.pullPolicy)
			if got := Hash([]byte(stored), tc.collisionCount); got != tc.want {
				t.Errorf("hash of the stored bytes is %s, want %s", got, tc.want)
			}
			template, err := Template(build.Revision("sample", 1, stored))
			if err != nil {
				t.Fatal(err)
			}
			data, err := Data(template)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(stored, string(data)); diff != "" {
				t.Errorf("bytes (-stored +made):\n%s", diff)
			}
		})
	}
}

// TestDataKnowsAllMetadata fails when a new version of the Kubernetes types brings one more object with metadata into the Pod template, or
// leaves out one more empty field: Data must then put back what clusters store.
func TestDataKnowsAllMetadata(t *testing.T) {
	var metadata, omitted []string
	seen := map[reflect.Type]bool{}
	var walk func(at string, kind reflect.Type)
	walk = func(at string, kind reflect.Type) {
		for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice || kind.Kind() == reflect.Map {
			kind = kind.Elem()
		}
		if kind == reflect.TypeFor[metav1.ObjectMeta]() {
			metadata = append(metadata, at)
			return
		}
		if kind.Kind() != reflect.Struct || seen[kind] {
			return
		}
		seen[kind] = true
		for i := range kind.NumField() {
			field := kind.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if strings.Contains(options, "omitzero") {
				omitted = append(omitted, at+"."+name)
			}
			walk(at+"."+name, field.Type)
		}
	}
	walk("template", reflect.TypeFor[corev1.PodTemplateSpec]())
	if diff := cmp.Diff([]string{"template.metadata", "template.spec.volumes..ephemeral.volumeClaimTemplate.metadata"}, metadata); diff != "" {
		t.Errorf("objects with metadata in a Pod template (-known +found):\n%s", diff)
	}
	if len(omitted) > 0 {
		t.Errorf("fields that are left out where older libraries wrote them: %v", omitted)
	}
}

func TestDataLeavesTheTemplateAlone(t *testing.T) {
	template := build.Template("nginx")
	before := template.DeepCopy()
	if _, err := Data(template); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, template); diff != "" {
		t.Errorf("template (-before +after):\n%s", diff)
	}
}

func TestNew(t *testing.T) {
	yes := true
	owner := Owner{
		Name: "web", Namespace: "default",
		Reference: metav1.OwnerReference{
			APIVersion: "apps.kruise.io/v1beta1",
			Kind:       "CloneSet",
			Name:       "web",
			UID:        "uid-web",
			Controller: &yes,
		},
		Annotations: map[string]string{
			"team": "shop", "kubectl.kubernetes.io/last-applied-configuration": "{}",
		},
	}
	template := build.Template("nginx")
	template.Labels[keys.RevisionHash] = "mine"
	rev, err := New(owner, template, 0)
	if err != nil {
		t.Fatal(err)
	}
	hash := Hash(rev.Data.Raw, 0)
	want := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Name: "web-" + hash, Namespace: "default",
		Labels:          map[string]string{"app": "web", keys.RevisionHash: hash},
		Annotations:     map[string]string{"team": "shop"},
		OwnerReferences: []metav1.OwnerReference{owner.Reference},
	}}
	if diff := cmp.Diff(want, rev, cmpopts.IgnoreFields(appsv1.ControllerRevision{}, "Data")); diff != "" {
		t.Errorf("revision (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"app": "web", keys.RevisionHash: "mine"}, template.Labels); diff != "" {
		t.Errorf("labels of the template have changed (-before +after):\n%s", diff)
	}

	again, err := New(owner, template, 1)
	if err != nil {
		t.Fatal(err)
	}
	if again.Name == rev.Name || string(again.Data.Raw) != string(rev.Data.Raw) {
		t.Errorf("after a collision the revision is %s with bytes %s, want another name and the same bytes", again.Name, again.Data.Raw)
	}

	owner.Name = strings.Repeat("x", 253)
	long, err := New(owner, template, 0)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("x", 223) + "-" + hash; long.Name != want {
		t.Errorf("a long name is cut to %d characters, want %d", len(long.Name), len(want))
	}
}

func TestIsOf(t *testing.T) {
	cases := map[string]struct {
		label, name string
		want        bool
	}{
		"the full name":                 {"web-6c9c6bc44f", "web-6c9c6bc44f", true},
		"only the hash":                 {"6c9c6bc44f", "web-6c9c6bc44f", true},
		"a name with dashes":            {"6c9c6bc44f", "my-web-6c9c6bc44f", true},
		"another hash":                  {"web-88dd87cc", "web-6c9c6bc44f", false},
		"only another hash":             {"88dd87cc", "web-6c9c6bc44f", false},
		"no label":                      {"", "web-6c9c6bc44f", false},
		"no label and no revision":      {"", "", false},
		"the hash is not just a suffix": {"c44f", "web-6c9c6bc44f", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsOf(tc.label, tc.name); got != tc.want {
				t.Errorf("label %q is of revision %q: %t, want %t", tc.label, tc.name, got, tc.want)
			}
		})
	}
}

func TestTemplateOfUnreadableRevision(t *testing.T) {
	for name, data := range map[string]string{
		"no JSON": `{"spec":`, "another type": `{"spec":{"template":"x"}}`, "no template": `{"spec":{}}`, "nothing": ``,
	} {
		t.Run(name, func(t *testing.T) {
			template, err := Template(build.Revision("web-x", 1, data))
			if err == nil || !strings.Contains(err.Error(), "web-x") {
				t.Errorf("template is %v and the error %v, want an error that names the revision", template, err)
			}
		})
	}
}
