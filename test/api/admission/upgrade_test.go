package admission

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	webhookconfig "github.com/seed-69ecc383/kruise/config/webhook"
	kruiseadmission "github.com/seed-69ecc383/kruise/internal/admission"
	"github.com/seed-69ecc383/kruise/internal/admission/recreate"
	"github.com/seed-69ecc383/kruise/internal/admission/validating"
	"github.com/seed-69ecc383/kruise/internal/convert"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// refusedToday are objects that the version before let be stored, and today's refuses: specs by kind.
func refusedToday() map[string]string {
	const sets = "selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: nginx}]}}"
	const job = "{jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: busybox}]}}}}}"
	return map[string]string{
		"CloneSet": "{" + sets + ", scaleStrategy: {podsToDelete: " + many(5001) + "}, updateStrategy: {rollingUpdate: {partition: 100.0%, " +
			"maxUnavailable: 020%, priorityStrategy: {orderPriority: " + manyOf(101, "{orderedKey: a%d}") + "}}}}",
		"StatefulSet": "{" + sets + ", serviceName: web, reserveOrdinals: " + manyOf(20001, "%d") +
			"}",
		"DaemonSet": "{" + sets + ", burstReplicas: 050%, updateStrategy: {rollingUpdate: {partition: 050%}}}",
		"SidecarSet": "{selector: {matchLabels: {a: b}}, updateStrategy: {partition: 050%}, containers: " +
			manyOf(101, "{name: a%d, image: busybox}") + "}",
		"PodUnavailableBudget":     "{selector: {matchLabels: {a: b}}, maxUnavailable: 020%}",
		"ContainerRecreateRequest": "{podName: p, containers: " + manyOf(257, "{name: a%d}") + "}",
		"AdvancedCronJob":          "{schedule: '@every 1s', template: " + job + "}",
	}
}

// otherFields are merge patches of a field of spec that is right in all objects of the kind, and of status.
func otherFields() map[string][2]string {
	const history = `{"spec": {"revisionHistoryLimit": %d}}`
	const count = `"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1`
	const allowance = `"observedGeneration": 1, "currentAvailable": 1, "desiredAvailable": 1, "unavailableAllowed": 0`
	return map[string][2]string{
		"AdvancedCronJob":          {`{"spec": {"successfulJobsHistoryLimit": %d}}`, `{"status": {"lastScheduleTime": "2026-01-02T03:04:%02dZ"}}`},
		"BroadcastJob":             {`{"spec": {"failurePolicy": {"restartLimit": %d}}}`, `{"status": {"desired": %d}}`},
		"CloneSet":                 {history, `{"status": {` + count + `, "updatedReadyReplicas": %d}}`},
		"ContainerRecreateRequest": {`{"metadata": {"labels": {"changed": "%d"}}}`, `{"status": {"message": "%d"}}`},
		"DaemonSet":                {history, `{"status": {"desiredNumberScheduled": %d}}`},
		"EphemeralJob":             {`{"spec": {"ttlSecondsAfterFinished": %d}}`, `{"status": {"match": %d}}`},
		"ImageListPullJob":         {`{"spec": {"parallelism": %d}}`, `{"status": {"desired": %d}}`},
		"ImagePullJob":             {`{"spec": {"parallelism": %d}}`, `{"status": {"desired": %d}}`},
		"PodProbeMarker":           {`{"metadata": {"labels": {"changed": "%d"}}}`, `{"status": {"matchedPods": %d}}`},
		"PodUnavailableBudget":     {`{"metadata": {"labels": {"changed": "%d"}}}`, `{"status": {` + allowance + `, "totalReplicas": %d}}`},
		"SidecarSet":               {history, `{"status": {"matchedPods": %d}}`},
		"StatefulSet":              {history, `{"status": {` + count + `, "currentReplicas": %d}}`},
	}
}

// upgrade is an API server whose CRDs change under the objects that it stores.
type upgrade struct {
	*scene.Stage
	url string
	ca  []byte
	// number makes every change another one.
	number int
}

// TestObjectsStoredByTheVersionBefore stores the examples, and what only the version before lets be stored, under the CRDs of that version.
// Under today's CRDs and webhooks, and under those of before again, every object can be read and listed in each of its versions, its status
// can be written, and what is right of it be changed.
func TestObjectsStoredByTheVersionBefore(t *testing.T) {
	u := &upgrade{Stage: scene.NewStage(t, cluster.Options{Bare: true})}
	u.serve()
	before, today := u.recorded(), u.shipped()
	u.install(before)
	var stored, refused []*unstructured.Unstructured
	for _, o := range u.examples() {
		if hasKind(before, o.GetKind()) {
			stored = append(stored, u.store(o))
		}
	}
	for kind, spec := range refusedToday() {
		o := u.refused(kind, spec)
		refused = append(refused, o.DeepCopy())
		stored = append(stored, u.store(o))
	}
	check := func(version string) {
		for _, o := range stored {
			t.Run(version+"/"+o.GetKind()+"/"+o.GetName(), func(t *testing.T) { u.canBeUsed(t, o) })
		}
	}
	u.install(today)
	u.addWebhooks()
	for _, o := range refused {
		o.SetName("new")
		u.Eventually(o.GetKind()+" is refused", func() error {
			if err := u.Client.Create(u.Ctx, o.DeepCopy(), client.DryRunAll); !apierrors.IsInvalid(err) {
				return fmt.Errorf("answered %v, want a refusal", err) //nolint:errorlint // there may be none
			}
			return nil
		})
	}
	check("after the upgrade")
	u.removeWebhooks()
	u.install(before)
	for _, o := range refused {
		u.Eventually(o.GetKind()+" is accepted", func() error { return u.Client.Create(u.Ctx, o.DeepCopy(), client.DryRunAll) })
	}
	check("after the downgrade")
}

// canBeUsed reads, lists and changes an object in each version that is served.
func (u *upgrade) canBeUsed(t *testing.T, stored *unstructured.Unstructured) {
	crd := u.crdOf(stored.GetKind())
	for _, version := range crd.Spec.Versions {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(crd.Spec.Group + "/" + version.Name)
		o.SetKind(stored.GetKind())
		key := client.ObjectKeyFromObject(stored)
		if err := u.Client.Get(u.Ctx, key, o); err != nil {
			t.Fatalf("reading it in %s: %v", version.Name, err)
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(o.GroupVersionKind())
		if err := u.Client.List(u.Ctx, list, client.InNamespace(key.Namespace)); err != nil || len(list.Items) == 0 {
			t.Errorf("listing %d objects in %s: %v", len(list.Items), version.Name, err)
		}
		other, known := otherFields()[stored.GetKind()]
		if !known {
			t.Fatalf("nothing is known that could be changed of a %s", stored.GetKind())
		}
		u.number++
		change := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, other[0], u.number))
		if err := u.Client.Patch(u.Ctx, o.DeepCopy(), change); err != nil {
			t.Errorf("changing another field in %s: %v", version.Name, err)
		}
		status := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, other[1], u.number%60))
		if err := u.Client.Status().Patch(u.Ctx, o.DeepCopy(), status); err != nil {
			t.Errorf("writing the status in %s: %v", version.Name, err)
		}
		label := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"annotations": {"changed": "%d"}}}`, u.number))
		if err := u.Client.Patch(u.Ctx, o.DeepCopy(), label); err != nil {
			t.Errorf("changing an annotation in %s: %v", version.Name, err)
		}
	}
}

// serve runs today's conversion and webhooks in this process.
func (u *upgrade) serve() {
	u.Helper()
	templates, err := validating.NewTemplateChecker(u.Config)
	u.Must(err)
	mux := http.NewServeMux()
	kruiseadmission.Register(muxServer{mux}, kruiseadmission.Options{
		Revisions:         u.Client,
		Validation:        validating.Options{Live: u.Client, Templates: templates, Namespace: "default"},
		ContainerRecreate: recreate.Options{Live: u.Client},
		Now:               time.Now,
	})
	web := httptest.NewTLSServer(mux)
	u.Cleanup(web.Close)
	u.url, u.ca = web.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
}

// addWebhooks installs the webhooks for our own kinds, as they are shipped.
func (u *upgrade) addWebhooks() {
	u.Helper()
	documents := bytes.Split(webhookconfig.Manifests, []byte("\n---\n"))
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validation admissionregistrationv1.ValidatingWebhookConfiguration
	u.Must(yaml.Unmarshal(documents[0], &mutating))
	u.Must(yaml.Unmarshal(documents[1], &validation))
	here := func(c admissionregistrationv1.WebhookClientConfig) (admissionregistrationv1.WebhookClientConfig, bool) {
		url := u.url + *c.Service.Path
		return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: u.ca}, strings.HasSuffix(url, "-pod")
	}
	var mutate []admissionregistrationv1.MutatingWebhook
	for _, hook := range mutating.Webhooks {
		config, pods := here(hook.ClientConfig)
		if hook.ClientConfig = config; !pods {
			mutate = append(mutate, hook)
		}
	}
	var validate []admissionregistrationv1.ValidatingWebhook
	for _, hook := range validation.Webhooks {
		config, pods := here(hook.ClientConfig)
		if hook.ClientConfig = config; !pods {
			validate = append(validate, hook)
		}
	}
	mutating.Webhooks, validation.Webhooks = mutate, validate
	u.Must(u.Client.Create(u.Ctx, &mutating))
	u.Must(u.Client.Create(u.Ctx, &validation))
}

func (u *upgrade) removeWebhooks() {
	u.Helper()
	u.Must(u.Client.DeleteAllOf(u.Ctx, &admissionregistrationv1.MutatingWebhookConfiguration{}))
	u.Must(u.Client.DeleteAllOf(u.Ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{}))
}

// recorded returns the CRDs of the version before. To record those of another one: git archive REF config/crd/bases | gzip -n -9.
func (u *upgrade) recorded() []*apiextensionsv1.CustomResourceDefinition {
	u.Helper()
	packed, err := os.ReadFile("testdata/previous-crds.tar.gz")
	u.Must(err)
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	u.Must(err)
	var out []*apiextensionsv1.CustomResourceDefinition
	for files := tar.NewReader(unpacked); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		u.Must(err)
		if !strings.HasSuffix(header.Name, ".yaml") {
			continue
		}
		text, err := io.ReadAll(files)
		u.Must(err)
		out = append(out, u.parse(text))
	}
}

// hasKind reports whether there is a CRD of a kind: the version before may not have known it.
func hasKind(crds []*apiextensionsv1.CustomResourceDefinition, kind string) bool {
	return slices.ContainsFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Spec.Names.Kind == kind })
}

// shipped returns today's CRDs.
func (u *upgrade) shipped() []*apiextensionsv1.CustomResourceDefinition {
	u.Helper()
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, text := range u.files("config/crd/bases/*.yaml") {
		out = append(out, u.parse(text))
	}
	return out
}

// parse reads a CRD, and has it converted in this process.
func (u *upgrade) parse(text []byte) *apiextensionsv1.CustomResourceDefinition {
	u.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	u.Must(yaml.Unmarshal(text, crd))
	if c := crd.Spec.Conversion; c != nil && c.Webhook != nil {
		url := u.url + convert.Path
		c.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: u.ca}
	}
	return crd
}

func (u *upgrade) install(crds []*apiextensionsv1.CustomResourceDefinition) {
	u.Helper()
	for _, crd := range crds {
		installed := &apiextensionsv1.CustomResourceDefinition{}
		err := u.Client.Get(u.Ctx, client.ObjectKeyFromObject(crd), installed)
		if apierrors.IsNotFound(err) {
			u.Must(u.Client.Create(u.Ctx, crd.DeepCopy()))
			continue
		}
		u.Must(err)
		installed.Spec = crd.Spec
		u.Must(u.Client.Update(u.Ctx, installed))
	}
}

func (u *upgrade) crdOf(kind string) *apiextensionsv1.CustomResourceDefinition {
	u.Helper()
	var list apiextensionsv1.CustomResourceDefinitionList
	u.Must(u.Client.List(u.Ctx, &list))
	for i := range list.Items {
		if list.Items[i].Spec.Names.Kind == kind {
			return &list.Items[i]
		}
	}
	u.Fatalf("there is no CRD of %s", kind)
	return nil
}

// examples returns the examples of our own kinds.
func (u *upgrade) examples() []*unstructured.Unstructured {
	u.Helper()
	var out []*unstructured.Unstructured
	for _, text := range u.files("examples/*.yaml") {
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			raw, err := yaml.YAMLToJSON(document)
			u.Must(err)
			o := &unstructured.Unstructured{}
			u.Must(json.Unmarshal(raw, &o.Object))
			if strings.HasSuffix(o.GroupVersionKind().Group, "kruise.io") {
				o.SetName(fmt.Sprintf("%s-%d", o.GetName(), len(out))) // some examples share a name
				out = append(out, o)
			}
		}
	}
	return out
}

// refused returns an object of the version that its kind is stored in.
func (u *upgrade) refused(kind, spec string) *unstructured.Unstructured {
	u.Helper()
	crd, o := u.crdOf(kind), &unstructured.Unstructured{Object: map[string]any{}}
	var fields any
	u.Must(yaml.Unmarshal([]byte(spec), &fields))
	o.Object["spec"] = whole(fields)
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			o.SetAPIVersion(crd.Spec.Group + "/" + version.Name)
		}
	}
	o.SetKind(kind)
	o.SetName("refused-today")
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		o.SetNamespace("default")
	}
	return o
}

// store creates an object as soon as its kind is served.
func (u *upgrade) store(o *unstructured.Unstructured) *unstructured.Unstructured {
	u.Helper()
	if u.crdOf(o.GetKind()).Spec.Scope == apiextensionsv1.NamespaceScoped && o.GetNamespace() == "" {
		o.SetNamespace("default")
	}
	u.Eventually("storing "+o.GetKind()+" "+o.GetName(), func() error {
		err := u.Client.Create(u.Ctx, o)
		if apierrors.IsInvalid(err) {
			u.Fatalf("storing %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		return err
	})
	return o
}

func (u *upgrade) files(pattern string) [][]byte {
	u.Helper()
	root, err := cluster.Root()
	u.Must(err)
	names, err := filepath.Glob(filepath.Join(root, pattern))
	u.Must(err)
	var out [][]byte
	for _, name := range names {
		text, err := os.ReadFile(name)
		u.Must(err)
		out = append(out, text)
	}
	return out
}
