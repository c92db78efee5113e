package protection

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

const (
	deletionLabel = "policy.kruise.io/delete-protection"
	// forbidden begins every refusal to delete something, cascading that of what holds something.
	forbidden = "forbidden by ResourcesProtectionDeletion for "
	cascading = forbidden + deletionLabel + "=Cascading and "
	always    = forbidden + deletionLabel + "=Always"
)

// guard is a namespace for a test of deletion protection.
type guard struct{ *env }

// newGuard returns one for a test that runs beside others.
func newGuard(t *testing.T) *guard {
	t.Helper()
	t.Parallel()
	return newSerialGuard(t)
}

// newSerialGuard does the same for a test that runs alone. It waits until the policies are in force.
func newSerialGuard(t *testing.T) *guard {
	t.Helper()
	g := &guard{newSerialEnv(t)}
	probe := g.Make("{apiVersion: v1, kind: ConfigMap, metadata: {name: probe, labels: {" + deletionLabel + ": Always}}}")
	g.Eventually("deletion protection is in force", func() error {
		if err := g.Client.Delete(g.Ctx, probe, client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("deleting a protected object: %w", err)
		}
		return nil
	})
	g.unprotect(probe)
	g.Must(g.Client.Delete(g.Ctx, probe))
	return g
}

// protect writes the label; an empty value removes it.
func (g *guard) protect(o client.Object, value string) {
	g.Helper()
	text := `{"metadata":{"labels":{"` + deletionLabel + `":null}}}`
	if value != "" {
		text = `{"metadata":{"labels":{"` + deletionLabel + `":"` + value + `"}}}`
	}
	g.Must(g.Client.Patch(g.Ctx, o, client.RawPatch("application/merge-patch+json", []byte(text))))
}

func (g *guard) unprotect(o client.Object) {
	g.Helper()
	g.protect(o, "")
}

// keeps checks that the deletion of an object is refused with these texts, and that it is there and not being deleted. It asks again while
// nobody answers the API server: a machine may be busy, and a manager may serve elsewhere than the one before it.
func (g *guard) keeps(o client.Object, texts ...string) {
	g.Helper()
	err := g.Client.Delete(g.Ctx, o)
	for tries := 0; scene.IsUnanswered(err) && tries < 20; tries++ {
		err = g.Client.Delete(g.Ctx, o)
	}
	if err := refusedWith(err, texts...); err != nil {
		g.Errorf("deleting %T %s: %v", o, o.GetName(), err)
	}
	g.Must(g.Client.Get(g.Ctx, client.ObjectKeyFromObject(o), o))
	if o.GetDeletionTimestamp() != nil {
		g.Errorf("%s is being deleted", o.GetName())
	}
}

// refusedWith checks that a deletion was refused with status 403 and these texts.
func refusedWith(err error, texts ...string) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("answered %v, want 403", err) //nolint:errorlint // it may be nil
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			return fmt.Errorf("answered %q, want it to say %q", err.Error(), text)
		}
	}
	return nil
}

// goes waits until an object can be deleted: what it held may be on its way out for a moment.
func (g *guard) goes(o client.Object) {
	g.Helper()
	g.Eventually(fmt.Sprintf("%T %s can be deleted", o, o.GetName()), func() error {
		return client.IgnoreNotFound(g.Client.Delete(g.Ctx, o))
	})
}

// namespace makes a namespace with the label.
func (g *guard) namespace(value string) *corev1.Namespace {
	g.Helper()
	name := g.NewNamespace(map[string]string{deletionLabel: value})
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// pod makes a Pod in a namespace. It fits no node, so that no kubelet writes its status.
func (g *guard) pod(namespace string) *corev1.Pod {
	g.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: namespace}}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx:1"}}
	p.Spec.TerminationGracePeriodSeconds = new(int64)
	p.Spec.NodeSelector = map[string]string{"no": "node"}
	g.Must(g.Client.Create(g.Ctx, p))
	return p
}

// claim makes a claim in a namespace, and a volume for it, and waits until they are bound.
func (g *guard) claim(namespace string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	g.Helper()
	in := g.In(namespace)
	volume := in.Manifest(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: ` + namespace + `}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  claimRef: {name: data, namespace: ` + namespace + `}
  hostPath: {path: /tmp/` + namespace + `}`)
	volume.SetNamespace("")
	g.Must(g.Client.Create(g.Ctx, volume))
	in.Make(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  volumeName: ` + namespace + `
  resources: {requests: {storage: 1Gi}}`)
	c, v := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	g.Eventually("the claim is bound", func() error {
		in.Read("data", c)
		g.Must(g.Client.Get(g.Ctx, client.ObjectKey{Name: namespace}, v))
		if c.Status.Phase != corev1.ClaimBound || v.Status.Phase != corev1.VolumeBound {
			return fmt.Errorf("claim %s, volume %s", c.Status.Phase, v.Status.Phase)
		}
		return nil
	})
	return c, v
}

// crd makes a CRD with the label, and waits until it is served.
func (g *guard) crd(value string) *unstructured.Unstructured {
	g.Helper()
	kind := "Tree" + strconv.Itoa(len(g.Namespace)) + strings.ReplaceAll(strings.TrimPrefix(g.Namespace, g.Site.Name+"-"), "-", "")
	plural := strings.ToLower(kind) + "s"
	o := g.Manifest(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.example.com, labels: {%[2]s: %[3]s}}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: %[4]s, plural: %[1]s}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`,
		plural, deletionLabel, value, kind))
	o.SetNamespace("")
	g.Must(g.Client.Create(g.Ctx, o))
	g.Cleanup(func() {
		g.Ctx = g.Afterwards()
		if err := g.Client.Get(g.Ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return // most tests delete it
		}
		g.unprotect(o)
		g.Must(g.Client.Delete(g.Ctx, o))
	})
	g.Eventually("the CRD is served", func() error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("example.com/v1")
		list.SetKind(kind + "List")
		return g.Client.List(g.Ctx, list)
	})
	return o
}

// instance makes an object of a CRD.
func (g *guard) instance(crd *unstructured.Unstructured) *unstructured.Unstructured {
	g.Helper()
	kind, _, err := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	g.Must(err)
	return g.Make("{apiVersion: example.com/v1, kind: " + kind + ", metadata: {name: oak}}")
}

// metric returns what a metric of the manager says of a label value.
func (g *guard) metric(name, of string) float64 {
	g.Helper()
	request, err := http.NewRequestWithContext(g.Ctx, http.MethodGet, "http://"+g.Site.Manager.MetricsAddress()+"/metrics", http.NoBody)
	g.Must(err)
	response, err := http.DefaultClient.Do(request)
	g.Must(err)
	defer func() { _ = response.Body.Close() }() // it is read
	text, err := io.ReadAll(response.Body)
	g.Must(err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, name+"{") && strings.Contains(line, `"`+of+`"`) {
			n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, "}")+1:]), 64)
			g.Must(err)
			return n
		}
	}
	return 0
}
