package validating

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// hubLog is a valid SidecarSet, defaulted, in each version.
const (
	baseLog = `
metadata: {name: log, labels: {team: a}}
spec:
  selector: {matchLabels: {app: web}}
  containers:
  - {name: log, image: "log:1", podInjectPolicy: BeforeAppContainer, upgradeStrategy: {upgradeType: ColdUpgrade}, shareVolumePolicy: {type: disabled}}
  updateStrategy: {type: RollingUpdate, partition: 0, maxUnavailable: 1}`
	hubLog   = "apiVersion: apps.kruise.io/v1beta1\nkind: SidecarSet" + baseLog
	olderLog = "apiVersion: apps.kruise.io/v1alpha1\nkind: SidecarSet" + baseLog
)

// others are what the cluster has: SidecarSets, a revision, and the configuration.
const others = `
- kind: SidecarSet
  apiVersion: apps.kruise.io/v1beta1
  metadata: {name: other}
  spec:
    selector: {matchLabels: {app: web}}
    namespaceSelector: {matchLabels: {team: b}}
    containers: [{name: envoy, image: envoy, upgradeStrategy: {upgradeType: HotUpgrade}}]
    volumes: [{name: data, emptyDir: {}}]
    patchPodMetadata: [{annotations: {oom-score: "1"}, patchPolicy: Overwrite}]
- kind: SidecarSet
  apiVersion: apps.kruise.io/v1beta1
  metadata: {name: canary, annotations: {apps.kruise.io/sidecarset-canary: "true", apps.kruise.io/sidecarset-base: log}}
  spec:
    selector: {matchLabels: {app: web, canary: "true"}}
    containers: [{name: log, image: log}]
`

func sidecarSetOptions(t *testing.T) Options {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var sets []v1beta1.SidecarSet
	if err := yaml.Unmarshal([]byte(others), &sets); err != nil {
		t.Fatal(err)
	}
	revision := func(name, set, version string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kruise-system", Labels: map[string]string{
			"kruise.io/sidecarset-name": set, "apps.kruise.io/sidecarset-custom-version": version,
		}}}
	}
	configuration := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kruise-configuration", Namespace: "kruise-system"},
		Data: map[string]string{"SidecarSet_PatchPodMetadata_WhiteList": `{"rules":[
			{"selector":{"matchLabels":{"team":"a"}},"allowedAnnotationKeyExprs":["^oom-score$"]},{"selector":{"matchLabels":{"team":"c"}},"allowedAnnotationKeyExprs":[".*"]}]}`},
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&sets[0], &sets[1], configuration,
		revision("log-1", "log", "v1"), revision("other-1", "other", "v9")).Build()
	return Options{Live: reader, Namespace: "kruise-system"}
}

func askSidecarSet(o Options, object, old []byte) admission.Response {
	request := admissionv1.AdmissionRequest{
		UID: "1", Name: "log", Operation: admissionv1.Create,
		Kind:   metav1.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "SidecarSet"},
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
	}
	if old != nil {
		request.Operation = admissionv1.Update
	}
	hook := &webhook.Admission{Handler: SidecarSet(o)}
	return hook.Handle(context.Background(), admission.Request{AdmissionRequest: request})
}

// item is a container with some fields said otherwise.
func item(fields string) string {
	return `[{name: log, image: "log:1", podInjectPolicy: BeforeAppContainer, shareVolumePolicy: {type: disabled}, ` + fields + "}]"
}

func TestSidecarSetRules(t *testing.T) {
	const cold = "upgradeStrategy: {upgradeType: ColdUpgrade}"
	const hot = "upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: "
	for name, tc := range map[string]struct {
		object string // hubLog unless set
		old    edits  // unset creates
		new    edits
		want   string // part of the only cause; "" if it is allowed
	}{
		"a valid set":             {},
		"a valid set, older":      {object: olderLog},
		"hot with the same image": {new: edits{"spec.containers": item(hot + `"log:1"}`)}, want: "hotUpgradeEmptyImage: Invalid value"},
		"hot":                     {new: edits{"spec.containers": item(hot + `"empty:1"}`)}},
		"a name from elsewhere":   {new: edits{"spec.containers": item(cold + `, transferEnv: [{envName: A, sourceContainerNameFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}]`)}, want: "spec.containers[0].transferEnv[0].sourceContainerNameFrom.fieldRef.fieldPath: Invalid value"},
		"a name from a label":     {new: edits{"spec.containers": item(cold + `, transferEnv: [{envName: A, sourceContainerNameFrom: {fieldRef: {apiVersion: v1, fieldPath: "metadata.labels['main']"}}}]`)}},
		"resources twice":         {new: edits{"spec.containers": item(cold + `, resources: {limits: {cpu: 1}}, resourcesPolicy: {targetContainersMode: sum, targetContainersNameRegex: ".*", resourcesExpr: {limits: {cpu: cpu}}}`)}, want: "spec.containers[0].resources: Forbidden"},
		"no regular expression":   {new: edits{"spec.containers": item(cold + `, resourcesPolicy: {targetContainersMode: sum, targetContainersNameRegex: "(", resourcesExpr: {limits: {cpu: cpu}}}`)}, want: "targetContainersNameRegex: Invalid value"},
		"no partition in effect":  {new: edits{"spec.updateStrategy.type": "NotUpdate", "spec.updateStrategy.partition": "1", "spec.updateStrategy.selector": "{matchLabels: {a: b}}"}},
		"an unknown revision":     {new: edits{"spec.injectionStrategy": "{revision: {revisionName: log-2, policy: Always}}"}, want: "spec.injectionStrategy.revision.revisionName: Invalid value: \"log-2\": Cannot find specific ControllerRevision"},
		"a revision of another":   {new: edits{"spec.injectionStrategy": "{revision: {revisionName: other-1, policy: Always}}"}, want: "Cannot find specific ControllerRevision"},
		"a revision":              {new: edits{"spec.injectionStrategy": "{revision: {revisionName: log-1, policy: Always}}"}},
		"a custom version":        {new: edits{"spec.injectionStrategy": "{revision: {customVersion: v1, policy: Always}}"}},
		"a version of another":    {new: edits{"spec.injectionStrategy": "{revision: {customVersion: v9, policy: Always}}"}, want: "spec.injectionStrategy.revision.customVersion: Invalid value"},
		"an allowed annotation":   {new: edits{"spec.patchPodMetadata": `[{annotations: {oom-score: "1"}, patchPolicy: Retain}]`}},
		"another annotation":      {new: edits{"spec.patchPodMetadata": `[{annotations: {oom-score-adj: "1"}, patchPolicy: Retain}]`}, want: "sidecarSet patch metadata annotation(oom-score-adj) is not allowed"},
		"no rule":                 {new: edits{"metadata.labels": "{team: b}", "spec.patchPodMetadata": `[{annotations: {oom-score: "1"}, patchPolicy: Retain}]`}, want: "sidecarSet patch metadata annotation is not allowed"},
		"an annotation of ours":   {new: edits{"metadata.labels": "{team: c}", "spec.patchPodMetadata": `[{annotations: {kruise.io/sidecarset-hash: "1"}, patchPolicy: Retain}]`}, want: "is not allowed: it is written by this software alone"},
		"an annotation below our prefix": {new: edits{
			"metadata.labels":       "{team: c}",
			"spec.patchPodMetadata": `[{annotations: {sidecarset.kruise.io/team: "1", game.kruise.io/network: a}, patchPolicy: Retain}]`,
		}},
		"the version of a container": {new: edits{
			"metadata.labels":       "{team: c}",
			"spec.patchPodMetadata": `[{annotations: {version.sidecarset.kruise.io/app: "1"}, patchPolicy: Retain}]`,
		}, want: "is not allowed: it is written by this software alone"},
		"the state of an update": {new: edits{
			"metadata.labels":       "{team: c}",
			"spec.patchPodMetadata": `[{annotations: {apps.kruise.io/inplace-update-state: "{}"}, patchPolicy: Retain}]`,
		}, want: "is not allowed: it is written by this software alone"},
		"the launch order":         {new: edits{"metadata.labels": "{team: c}", "spec.patchPodMetadata": `[{annotations: {apps.kruise.io/container-launch-priority: Ordered}, patchPolicy: Retain}]`}},
		"no JSON to merge":         {new: edits{"spec.patchPodMetadata": `[{annotations: {oom-score: "x"}, patchPolicy: MergePatchJson}]`}, want: "must be a JSON object to be merged"},
		"an annotation of another": {new: edits{"spec.patchPodMetadata": `[{annotations: {oom-score: "1"}, patchPolicy: Overwrite}]`}, want: "annotation oom-score is in conflict with sidecarset other"},
		"a twin's name":            {new: edits{"spec.containers": strings.Replace(item(cold), "name: log", "name: envoy-1", 1)}, want: "container envoy-1 already exist in other"},
		"a name elsewhere":         {new: edits{"spec.namespaceSelector": "{matchLabels: {team: x}}", "spec.containers": strings.Replace(item(cold), "name: log", "name: envoy-1", 1)}},
		"a volume of another":      {new: edits{"spec.volumes": "[{name: data, hostPath: {path: /}}]"}, want: "volume data is in conflict with sidecarset other"},
		"the same volume":          {new: edits{"spec.volumes": "[{name: data, emptyDir: {}}]"}},
		"another image, beside an old mistake": {
			old: edits{"spec.namespaceSelector": "{matchLabels: {team: x}}", "spec.patchPodMetadata": `[{annotations: {oom-score: "x"}, patchPolicy: MergePatchJson}]`},
			new: edits{
				"spec.namespaceSelector": "{matchLabels: {team: x}}", "spec.patchPodMetadata": `[{annotations: {oom-score: "x"}, patchPolicy: MergePatchJson}]`,
				"spec.containers": strings.Replace(item(cold), "log:1", "log:2", 1),
			},
		},
		"another image, beside a clash of old": {
			old: edits{"spec.containers": strings.Replace(item(cold), "name: log", "name: envoy-1", 1)},
			new: edits{"spec.containers": strings.NewReplacer("name: log", "name: envoy-1", "log:1", "log:2").Replace(item(cold))},
		},
		"another image":     {old: edits{}, new: edits{"spec.containers": strings.Replace(item(cold), "log:1", "log:2", 1)}},
		"another container": {old: edits{}, new: edits{"spec.containers": strings.Replace(item(cold), "name: log", "name: agent", 1)}, want: "container agent is not found"},
		"stored without defaults": {
			old: edits{"spec.containers": `[{name: log, image: "log:1"}]`}, new: edits{"spec.containers": item(cold)},
		},
		"another way to upgrade": {old: edits{}, new: edits{"spec.containers": item(hot + `"empty:1"}`)}, want: "upgradeType is immutable"},
		"a hot init container":   {new: edits{"spec.containers": "~", "spec.initContainers": strings.Replace(item(hot+`"empty:1"}, restartPolicy: Always`), "log", "init", 1)}, want: "init containers can't be upgraded hot"},
		"a canary of nothing":    {new: edits{"metadata.annotations": `{apps.kruise.io/sidecarset-canary: "true", apps.kruise.io/sidecarset-base: gone}`, "spec.updateStrategy.type": "NotUpdate"}, want: "must be the name of a SidecarSet"},
		"a canary of a canary":   {new: edits{"metadata.annotations": `{apps.kruise.io/sidecarset-canary: "true", apps.kruise.io/sidecarset-base: canary}`, "spec.updateStrategy.type": "NotUpdate"}, want: "is a canary itself"},
		"a canary that updates":  {new: edits{"metadata.annotations": `{apps.kruise.io/sidecarset-canary: "true", apps.kruise.io/sidecarset-base: other}`}, want: "must be NotUpdate for a canary"},
	} {
		t.Run(name, func(t *testing.T) {
			object := tc.object
			if object == "" {
				object = hubLog
			}
			var old []byte
			if tc.old != nil {
				old = edit(t, object, tc.old)
			}
			got := causes(askSidecarSet(sidecarSetOptions(t), edit(t, object, tc.new), old))
			if tc.want == "" {
				tc.want = "allowed"
			}
			if len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Errorf("got %q, want one cause with %q", got, tc.want)
			}
		})
	}
}

func TestSidecarSetWarnings(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		new    edits
		want   []string
	}{
		"nothing to say": {object: hubLog},
		"the first spelling": {object: olderLog, new: edits{"spec.strategy": "{rollingUpdate: {maxUnavailable: 1}}", "spec.paused": "false"},
			want: []string{"spec.strategy is deprecated, use spec.updateStrategy.maxUnavailable", "spec.paused is deprecated, use spec.updateStrategy.paused"}},
		"both spellings": {object: olderLog, new: edits{"spec.strategy": "{rollingUpdate: {maxUnavailable: 2}}"},
			want: []string{"spec.strategy is deprecated, use spec.updateStrategy.maxUnavailable", "spec.strategy.rollingUpdate.maxUnavailable 2 has no effect: spec.updateStrategy.maxUnavailable 1 is used"}},
		"nothing may be unavailable": {object: hubLog, new: edits{"spec.updateStrategy.maxUnavailable": "0"},
			want: []string{"spec.updateStrategy.maxUnavailable 0 updates only Pods that are not ready"}},
		"an older revision, updated at once": {object: hubLog, new: edits{"spec.injectionStrategy": "{revision: {customVersion: v1, policy: Always}}"},
			want: []string{"new Pods get the revision of spec.injectionStrategy.revision and are updated to the present one at once: pause the update, or set its partition or selector"}},
	} {
		t.Run(name, func(t *testing.T) {
			response := askSidecarSet(sidecarSetOptions(t), edit(t, tc.object, tc.new), nil)
			if !response.Allowed {
				t.Fatalf("refused: %v", causes(response))
			}
			if diff := cmp.Diff(tc.want, response.Warnings); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
