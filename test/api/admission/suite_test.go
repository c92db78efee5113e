// Package admission asks a real API server to write CloneSets: first with nothing but the CRD, then with our webhooks behind it.
package admission

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kruiseadmission "github.com/seed-69ecc383/kruise/internal/admission"
	"github.com/seed-69ecc383/kruise/internal/admission/validating"
	"github.com/seed-69ecc383/kruise/internal/convert"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

const crdName = "clonesets.apps.kruise.io"

// server is an API server that serves CloneSets.
type server struct {
	*scene.Stage
	ctx    context.Context
	client client.Client // as Cluster.Client, but what the server warns of ends up in heard
	heard  *heard
}

type heard struct {
	mu    sync.Mutex
	texts []string
}

func (h *heard) HandleWarningHeader(_ int, _ string, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = append(h.texts, text)
}

// take returns what was heard since it was last asked.
func (h *heard) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { h.texts = nil }()
	return strings.Join(h.texts, "\n")
}

func newServer(t *testing.T) *server {
	t.Helper()
	at := scene.NewStage(t, cluster.Options{Bare: true})
	s := &server{Stage: at, ctx: at.Ctx, heard: &heard{}}
	config := rest.CopyConfig(s.Config)
	config.WarningHandler = s.heard
	var err error
	s.client, err = client.New(config, client.Options{Scheme: s.Client.Scheme()})
	s.must(err)
	root, err := cluster.Root()
	s.must(err)
	s.must(s.ApplyFile(s.ctx, filepath.Join(root, "config/crd/bases/apps.kruise.io_clonesets.yaml")))
	s.eventually("the CRD is served", func() error {
		return s.Client.List(s.ctx, s.list("v1beta1"))
	})
	return s
}

func (s *server) must(err error) {
	s.Helper()
	s.Must(err)
}

func (s *server) eventually(what string, check func() error) {
	s.Helper()
	s.Eventually(what, check)
}

func (s *server) list(version string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apps.kruise.io/" + version)
	list.SetKind("CloneSetList")
	return list
}

// parse reads a CloneSet without its header.
func (s *server) parse(version, text string) *unstructured.Unstructured {
	s.Helper()
	o := &unstructured.Unstructured{}
	s.must(yaml.Unmarshal([]byte(text), &o.Object))
	o.SetAPIVersion("apps.kruise.io/" + version)
	o.SetKind("CloneSet")
	o.SetNamespace("default")
	return o
}

func (s *server) get(version, name string) *unstructured.Unstructured {
	s.Helper()
	o := s.parse(version, "{}")
	s.must(s.client.Get(s.ctx, client.ObjectKey{Namespace: "default", Name: name}, o))
	return o
}

// serveWebhooks runs our handlers in this process and makes the API server call them.
func (s *server) serveWebhooks() {
	s.Helper()
	mux := http.NewServeMux()
	templates, err := validating.NewTemplateChecker(s.Config)
	s.must(err)
	kruiseadmission.Register(muxServer{mux}, kruiseadmission.Options{
		Validation: validating.Options{Live: s.Client, Templates: templates},
	})
	web := httptest.NewTLSServer(mux)
	s.Cleanup(web.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})

	crd := &apiextensionsv1.CustomResourceDefinition{}
	s.must(s.Client.Get(s.ctx, client.ObjectKey{Name: crdName}, crd))
	url := web.URL + convert.Path
	crd.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca}
	s.must(s.Client.Update(s.ctx, crd))

	hook := func(path string) admissionregistrationv1.WebhookClientConfig {
		at := web.URL + path
		return admissionregistrationv1.WebhookClientConfig{URL: &at, CABundle: ca}
	}
	fail, exact, none, timeout := admissionregistrationv1.Fail, admissionregistrationv1.Exact, admissionregistrationv1.SideEffectClassNone, int32(10)
	rules := func(operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{Operations: operations, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{"apps.kruise.io"}, APIVersions: []string{"v1alpha1", "v1beta1"}, Resources: []string{"clonesets"},
		}}}
	}
	s.must(s.Client.Create(s.ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "test"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mcloneset.kb.io", ClientConfig: hook("/mutate-apps-kruise-io-cloneset"), FailurePolicy: &fail, MatchPolicy: &exact, SideEffects: &none,
			TimeoutSeconds: &timeout, AdmissionReviewVersions: []string{"v1"}, Rules: rules("CREATE", "UPDATE"),
		}},
	}))
	s.must(s.Client.Create(s.ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "test"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "vcloneset.kb.io", ClientConfig: hook("/validate-apps-kruise-io-v1alpha1-cloneset"), FailurePolicy: &fail, MatchPolicy: &exact, SideEffects: &none,
			TimeoutSeconds: &timeout, AdmissionReviewVersions: []string{"v1"}, Rules: rules("CREATE", "UPDATE"),
		}},
	}))
	s.eventually("the webhooks are called", func() error {
		probe := s.parse("v1alpha1", `{metadata: {name: probe}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}}}}`)
		if err := s.Client.Create(s.ctx, probe, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "does not match") {
			return fmt.Errorf("a wrong object was answered with %v", err) //nolint:errorlint // there may be none
		}
		return s.Client.List(s.ctx, s.list("v1alpha1"))
	})
}

type muxServer struct{ *http.ServeMux }

func (m muxServer) Register(path string, hook http.Handler) { m.Handle(path, hook) }

// pod creates a Pod that the CloneSet controls.
func (s *server) pod(name string, owner *unstructured.Unstructured) {
	s.Helper()
	yes := true
	s.must(s.Client.Create(s.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes,
		}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx"}}},
	}))
}
