package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWebhooks(t *testing.T) {
	s := newServer(t)
	s.serveWebhooks()
	for name, test := range map[string]func(*testing.T, *server){
		"an object of the older version is defaulted and stored": defaulted,
		"what this build does not know is kept":                  futureFields,
		"the API server judges the template":                     judgedTemplates,
		"podsToDelete names Pods of the set":                     podsToDelete,
		"in place only":                                          inPlaceOnly,
		"a write by the older version loses nothing":             roundTrip,
		"fields taken away do not come back":                     staleAnnotations,
	} {
		t.Run(name, func(t *testing.T) {
			inner := *s
			inner.T = t
			test(t, &inner)
		})
	}
}

func defaulted(t *testing.T, s *server) {
	o := s.parse("v1alpha1", strings.ReplaceAll(minimal, "web", "defaulted"))
	s.must(s.client.Create(s.ctx, o))
	template := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "defaulted"}},
		"spec": map[string]any{
			"containers": []any{map[string]any{
				"name": "app", "image": "nginx", "imagePullPolicy": "Always",
				"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
			}},
			"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler", "securityContext": map[string]any{}, "terminationGracePeriodSeconds": int64(30),
		},
	}
	selector := map[string]any{"matchLabels": map[string]any{"app": "defaulted"}}
	for version, want := range map[string]map[string]any{
		"v1alpha1": {
			"replicas": int64(1), "revisionHistoryLimit": int64(10), "selector": selector, "template": template, "scaleStrategy": map[string]any{},
			"updateStrategy": map[string]any{"type": "ReCreate", "partition": int64(0), "maxUnavailable": "20%", "maxSurge": int64(0)},
		},
		"v1beta1": {
			"replicas": int64(1), "revisionHistoryLimit": int64(10), "selector": selector, "template": template, "scaleStrategy": map[string]any{"enablePVCReuse": true},
			"updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{
				"podUpdatePolicy": "ReCreate", "partition": int64(0), "maxUnavailable": "20%", "maxSurge": int64(0),
			}},
		},
	} {
		if diff := cmp.Diff(want, s.get(version, "defaulted").Object["spec"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
	generation := o.GetGeneration()
	if err := s.client.Update(s.ctx, o); err != nil || o.GetGeneration() != generation {
		t.Errorf("writing it back made generation %d of %d: %v", o.GetGeneration(), generation, err)
	}
}

func futureFields(t *testing.T, s *server) {
	o := s.parse("v1alpha1", strings.ReplaceAll(minimal, "web", "future"))
	s.must(unstructured.SetNestedField(o.Object, "kept", "spec", "template", "spec", "fieldOfTheFuture"))
	s.heard.take()
	s.must(s.client.Create(s.ctx, o))
	if got := s.heard.take(); !strings.Contains(got, `unknown field "template.spec.fieldOfTheFuture"`) {
		t.Errorf("warned %q, want a word about the unknown field", got)
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		if got, _, _ := unstructured.NestedString(s.get(version, "future").Object, "spec", "template", "spec", "fieldOfTheFuture"); got != "kept" {
			t.Errorf("%s has %q, want kept", version, got)
		}
	}
}

func judgedTemplates(t *testing.T, s *server) {
	o := s.parse("v1beta1", strings.ReplaceAll(minimal, "web", "judged"))
	container := map[string]any{"name": "NOT A NAME", "image": "nginx", "volumeMounts": []any{map[string]any{"name": "data", "mountPath": "/d"}, map[string]any{"name": "none", "mountPath": "/n"}}}
	s.must(unstructured.SetNestedSlice(o.Object, []any{container}, "spec", "template", "spec", "containers"))
	s.must(unstructured.SetNestedSlice(o.Object, []any{map[string]any{"metadata": map[string]any{"name": "data"}}}, "spec", "volumeClaimTemplates"))
	err := s.client.Create(s.ctx, o)
	wantError(t, err, `spec.template.spec.containers[0].name: Invalid value: "NOT A NAME": a lowercase RFC 1123 label`)
	wantError(t, err, `spec.template.spec.containers[0].volumeMounts[1].name: Not found: "none"`)
	if strings.Contains(err.Error(), `volumeMounts[0]`) {
		t.Errorf("the volume of the claim was not seen: %v", err)
	}
	if left := s.list("v1beta1"); true {
		left.SetKind("PodTemplateList")
		left.SetAPIVersion("v1")
		s.must(s.Client.List(s.ctx, left))
		if len(left.Items) > 0 {
			t.Errorf("%d PodTemplates were left behind", len(left.Items))
		}
	}
}

func podsToDelete(t *testing.T, s *server) {
	o := s.parse("v1beta1", strings.ReplaceAll(minimal, "web", "delete"))
	s.must(s.client.Create(s.ctx, o))
	s.pod("delete-1", o)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		set := s.get(version, "delete")
		s.must(unstructured.SetNestedStringSlice(set.Object, []string{"delete-1", "ghost"}, "spec", "scaleStrategy", "podsToDelete"))
		wantError(t, s.client.Update(s.ctx, set), `spec.scaleStrategy.podsToDelete[1]: Invalid value: "ghost": Pod ghost not found`)
		s.must(unstructured.SetNestedStringSlice(set.Object, []string{"delete-1"}, "spec", "scaleStrategy", "podsToDelete"))
		wantError(t, s.client.Update(s.ctx, set), "")
		unstructured.RemoveNestedField(set.Object, "spec", "scaleStrategy", "podsToDelete")
		s.must(s.client.Update(s.ctx, set))
	}
}

func inPlaceOnly(t *testing.T, s *server) {
	s.must(s.client.Create(s.ctx, s.parse("v1alpha1", strings.ReplaceAll(minimal, "web", "inplace")+"  updateStrategy: {type: InPlaceOnly}")))
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		set := s.get(version, "inplace")
		path := []string{"spec", "updateStrategy", "rollingUpdate", "maxSurge"}
		if version == "v1alpha1" {
			path = []string{"spec", "updateStrategy", "maxSurge"}
		}
		surge := set.DeepCopy()
		s.must(unstructured.SetNestedField(surge.Object, int64(1), path...))
		wantError(t, s.client.Update(s.ctx, surge), strings.Join(path, ".")+": Invalid value")

		containers, _, err := unstructured.NestedSlice(set.Object, "spec", "template", "spec", "containers")
		s.must(err)
		containers[0].(map[string]any)["env"] = []any{map[string]any{"name": "A", "value": version}}
		s.must(unstructured.SetNestedSlice(set.Object, containers, "spec", "template", "spec", "containers"))
		wantError(t, s.client.Update(s.ctx, set), "spec.template.spec.containers[0].env: Forbidden: only allowed to update images in spec for InPlaceOnly")

		delete(containers[0].(map[string]any), "env")
		containers[0].(map[string]any)["image"] = "nginx:" + version
		s.must(unstructured.SetNestedSlice(set.Object, containers, "spec", "template", "spec", "containers"))
		wantError(t, s.client.Update(s.ctx, set), "")
	}
}

const everything = `
metadata: {name: whole}
spec:
  replicas: 7
  selector: {matchLabels: {app: whole}}
  template: {metadata: {labels: {app: whole}}, spec: {containers: [{name: app, image: nginx}]}}
  scaleStrategy: {excludePreparingDelete: true, enablePVCReuse: true, maxUnavailable: 3}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      podUpdatePolicy: InPlaceIfPossible
      partition: 30%
      maxUnavailable: 2
      maxSurge: 1
      paused: true
      priorityStrategy: {weightPriority: [{weight: 5, matchSelector: {matchLabels: {a: b}}}]}
      scatterStrategy: [{key: a, value: b}]
      inPlaceUpdateStrategy:
        gracePeriodSeconds: 9
        imagePreDownloadParallelism: 3
        imagePreDownloadTimeoutSeconds: 60
        imagePreDownloadMinUpdatedReadyPods: 2
`

func roundTrip(t *testing.T, s *server) {
	onDelete := strings.NewReplacer("whole", "whole-on-delete", "type: RollingUpdate", "type: OnDelete").Replace(everything)
	for name, text := range map[string]string{"whole": everything, "whole-on-delete": onDelete} {
		s.must(s.client.Create(s.ctx, s.parse("v1beta1", text)))
		want := s.get("v1beta1", name)
		older := s.get("v1alpha1", name)
		older.SetLabels(with(older.GetLabels(), "written", "by-v1alpha1"))
		s.must(s.client.Update(s.ctx, older))
		got := s.get("v1beta1", name)
		if diff := cmp.Diff(want.Object["spec"], got.Object["spec"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got.GetGeneration() != want.GetGeneration() {
			t.Errorf("%s: a label made generation %d of %d", name, got.GetGeneration(), want.GetGeneration())
		}
	}
}

func with(labels map[string]string, key, value string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	return labels
}

func staleAnnotations(t *testing.T, s *server) {
	const key = "apps.kruise.io/image-predownload-parallelism"
	const exclude = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"
	o := s.parse("v1alpha1", strings.ReplaceAll(minimal, "web", "stale")+"  updateStrategy: {type: InPlaceIfPossible}")
	o.SetAnnotations(map[string]string{key: "4"})
	o.SetLabels(map[string]string{exclude: "true"})
	s.must(s.client.Create(s.ctx, o))

	hub := s.get("v1beta1", "stale")
	details, _, _ := unstructured.NestedMap(hub.Object, "spec", "updateStrategy", "rollingUpdate", "inPlaceUpdateStrategy")
	if diff := cmp.Diff(map[string]any{"imagePreDownloadParallelism": int64(4)}, details); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.must(unstructured.SetNestedMap(hub.Object, map[string]any{}, "spec", "updateStrategy", "rollingUpdate", "inPlaceUpdateStrategy"))
	s.must(unstructured.SetNestedField(hub.Object, false, "spec", "scaleStrategy", "excludePreparingDelete"))
	s.must(s.client.Update(s.ctx, hub))

	older := s.get("v1alpha1", "stale")
	if _, ok := older.GetAnnotations()[key]; ok || older.GetLabels()[exclude] != "" {
		t.Errorf("v1alpha1 still has %v %v", older.GetAnnotations(), older.GetLabels())
	}
	s.must(s.client.Update(s.ctx, older))
	hub = s.get("v1beta1", "stale")
	if got, _, _ := unstructured.NestedMap(hub.Object, "spec", "updateStrategy", "rollingUpdate", "inPlaceUpdateStrategy"); len(got) > 0 {
		t.Errorf("the field is back: %v", got)
	}
}
