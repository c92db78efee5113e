package protection

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// busy is a namespace whose Pods and claims are these.
func busy(pods, claims []object) map[string][]object {
	return map[string][]object{"PodList": pods, "PersistentVolumeClaimList": claims, "DeploymentList": nil}
}

func TestNamespace(t *testing.T) {
	const refused = "forbidden by ResourcesProtectionDeletion for "
	const cascading = refused + "policy.kruise.io/delete-protection=Cascading and "
	running, over, leaving := object{phase: "Running"}, object{phase: "Succeeded"}, object{phase: "Running", isLeaving: true}
	manyLeaving := append(slicesOf(leaving, 250), running)
	broken := errors.New("no answer")
	web, off := object{name: "web", value: "Always"}, object{name: "off", value: "Cascading"}
	big := object{name: "big", value: "Cascading", replicas: 3}
	for name, tc := range map[string]struct {
		value   string
		objects map[string][]object
		fails   map[string]error
		blind   bool
		want    string
	}{
		"empty":                             {value: "Cascading", objects: busy(nil, nil), want: "allowed"},
		"always":                            {value: "Always", objects: busy(nil, nil), want: refused + "policy.kruise.io/delete-protection=Always"},
		"a Pod":                             {value: "Cascading", objects: busy([]object{running, over}, nil), want: cascading + "active pods 1>0"},
		"Pods that have ended":              {value: "Cascading", objects: busy([]object{over, {phase: "Failed"}}, nil), want: "allowed"},
		"a Pod that is on its way out":      {value: "Cascading", objects: busy([]object{leaving}, nil), want: "allowed"},
		"a Pod behind many that are":        {value: "Cascading", objects: busy(manyLeaving, nil), want: cascading + "active pods 1>0"},
		"a claim":                           {value: "Cascading", objects: busy(nil, []object{{phase: "Bound"}, {phase: "Bound"}}), want: cascading + `"Bound" status pvc 2>0`},
		"a claim that nothing is bound to":  {value: "Cascading", objects: busy(nil, []object{{phase: "Pending"}}), want: "allowed"},
		"a claim that is on its way out":    {value: "Cascading", objects: busy(nil, []object{{phase: "Bound", isLeaving: true}}), want: "allowed"},
		"Pods that can't be counted":        {value: "Cascading", objects: busy(nil, nil), fails: map[string]error{"PodList": broken}, want: refused + "list pods error: no answer"},
		"claims that can't be counted":      {value: "Cascading", objects: busy(nil, nil), fails: map[string]error{"PersistentVolumeClaimList": broken}, want: refused + "list pvc error: no answer"},
		"no label, and Pods":                {objects: busy([]object{running}, nil), want: "allowed"},
		"another value, and Pods":           {value: "cascading", objects: busy([]object{running}, nil), want: "allowed"},
		"no label, and a protected object":  {objects: map[string][]object{"DeploymentList": {off, web}}, want: refused + "protected objects in the namespace: Deployment web"},
		"no label, one that has replicas":   {objects: map[string][]object{"CloneSetList": {big}}, want: refused + "protected objects in the namespace: CloneSet big"},
		"the label, and a protected object": {value: "Cascading", objects: map[string][]object{"PodList": nil, "PersistentVolumeClaimList": nil, "ServiceList": {web}}, want: refused + "protected objects in the namespace: Service web"},
		"one that is on its way out":        {objects: map[string][]object{"DeploymentList": {{name: "web", value: "Always", isLeaving: true}}}, want: "allowed"},
		"many":                              {objects: map[string][]object{"ConfigMapList": slicesOf(web, 107)}, want: refused + "protected objects in the namespace: " + strings.Repeat("ConfigMap web, ", 5) + "and 102 more"},
		"no right to look for them":         {blind: true, objects: map[string][]object{"DeploymentList": {web}}, want: "allowed"},
		"the label, and they can't be read": {value: "Cascading", objects: busy(nil, nil), fails: map[string]error{"DeploymentList": broken}, want: refused + "list protected objects error: listing deployments: no answer"},
		"no label, and they can't be read": {
			objects: busy(nil, nil), fails: map[string]error{"DeploymentList": broken},
			want: "allowed, protected objects in namespace shop, which will stay if there are any, could not be looked for: listing deployments: no answer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &api{t: t, objects: tc.objects, fails: tc.fails}
			response := Namespace(Options{Live: a, Contents: !tc.blind}).Handle(t.Context(), namespaces.deletion(t, shop(tc.value)))
			got, advice, _ := strings.Cut(said(t, response), "; ")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !response.Allowed && !strings.Contains(advice, "remove the label policy.kruise.io/delete-protection") {
				t.Errorf("the advice is %q", advice)
			}
		})
	}
}

func slicesOf(o object, n int) []object {
	var out []object
	for range n {
		out = append(out, o)
	}
	return out
}

// TestWhatIsNotAsked: what is no deletion, and of what is being deleted.
func TestWhatIsNotAsked(t *testing.T) {
	leaving := shop("Always")
	leaving.DeletionTimestamp = new(metav1.Unix(1_800_000_000, 0))
	finalize := namespaces.deletion(t, shop("Always"))
	finalize.SubResource = "finalize"
	update := namespaces.deletion(t, shop("Always"))
	update.Operation = admissionv1.Update
	collection := namespaces.deletion(t, shop("Always"))
	collection.OldObject.Raw = nil
	for name, asked := range map[string]admission.Request{
		"a second deletion": namespaces.deletion(t, leaving), "a subresource": finalize, "an update": update, "a deletion of many": collection,
	} {
		t.Run(name, func(t *testing.T) {
			if got := said(t, Namespace(Options{}).Handle(t.Context(), asked)); got != "allowed" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func crd(value string, versions ...apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinition {
	c := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "trees.example.com", Labels: map[string]string{label: value}}}
	c.Spec.Group, c.Spec.Names.Kind, c.Spec.Versions = "example.com", "Tree", versions
	return c
}

func TestCRD(t *testing.T) {
	const refused = "forbidden by ResourcesProtectionDeletion for "
	const cascading = refused + "policy.kruise.io/delete-protection=Cascading and "
	type version = apiextensionsv1.CustomResourceDefinitionVersion
	v1 := version{Name: "v1", Served: true, Storage: true}
	tree := object{name: "oak"}
	for name, tc := range map[string]struct {
		value    string
		versions []version
		objects  []object
		fails    error
		off      bool
		want     string
		listed   []string
	}{
		"always":                        {value: "Always", want: refused + "policy.kruise.io/delete-protection=Always"},
		"another value":                 {value: "never", want: "allowed"},
		"no object":                     {value: "Cascading", versions: []version{v1}, want: "allowed", listed: []string{"v1"}},
		"an object":                     {value: "Cascading", versions: []version{v1}, objects: slicesOf(tree, 1), want: cascading + "active CRs 1>0", listed: []string{"v1"}},
		"many, of which one page":       {value: "Cascading", versions: []version{v1}, objects: slicesOf(tree, 1234), want: cascading + "active CRs 1234>0", listed: []string{"v1"}},
		"one that is on its way out":    {value: "Cascading", versions: []version{v1}, objects: []object{{isLeaving: true}}, want: "allowed", listed: []string{"v1"}},
		"the gate is off":               {value: "Cascading", versions: []version{v1}, off: true, want: cascading + "objects that are not counted: feature-gate DeletionProtectionForCRDCascadingGate is not enabled"},
		"no answer":                     {value: "Cascading", versions: []version{v1}, fails: errors.New("no answer"), want: refused + "list CRs error: no answer"},
		"the version that is stored":    {value: "Cascading", versions: []version{{Name: "v1alpha1", Served: true}, v1}, want: "allowed", listed: []string{"v1"}},
		"which is not served any more":  {value: "Cascading", versions: []version{{Name: "v1alpha1", Storage: true}, {Name: "v2", Served: true}}, want: "allowed", listed: []string{"v2"}},
		"no version is served any more": {value: "Cascading", versions: []version{{Name: "v1", Storage: true}}, want: refused + "list CRs error: no version is served"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &api{t: t, objects: map[string][]object{"TreeList": tc.objects}, fails: map[string]error{"TreeList": tc.fails}}
			response := CRD(Options{Live: a, CRDs: !tc.off}).Handle(t.Context(), crds.deletion(t, crd(tc.value, tc.versions...)))
			got, _, _ := strings.Cut(said(t, response), "; ")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.listed, a.served); diff != "" {
				t.Errorf("versions that were listed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnUnreadableObjectIsAnError, and not a permission.
func TestAnUnreadableObjectIsAnError(t *testing.T) {
	asked := namespaces.deletion(t, &corev1.Namespace{})
	asked.OldObject.Raw = []byte("{")
	for name, handler := range map[string]admission.Handler{"namespace": Namespace(Options{}), "crd": CRD(Options{}), "report": Report(Options{})} {
		if response := handler.Handle(t.Context(), asked); response.Allowed || response.Result.Code != 400 {
			t.Errorf("%s answers %+v", name, response.Result)
		}
	}
}
