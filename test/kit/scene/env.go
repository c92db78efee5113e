package scene

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// Env is a namespace of a site, for one test.
type Env struct {
	*Test
	*cluster.Cluster
	// Client is the cluster's, and asks again where a webhook has answered too late.
	client.Client
	// Site is the site that the namespace is of.
	Site *Site
	// Namespace is the name of the namespace.
	Namespace string
	// Nodes are those that only the test has, sorted by name.
	Nodes []string
}

// Enter returns a namespace of the site, which is brought up by the first test that enters. The namespace is deleted when the test is over.
func (s *Site) Enter(t *testing.T) *Env {
	t.Helper()
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	e := &Env{Test: NewTest(t), Site: s, Cluster: s.Cluster, Client: patient{s.Client}}
	e.Namespace = e.NewNamespace(nil)
	return e
}

// In returns the same test in another namespace.
func (e *Env) In(namespace string) *Env {
	other := *e
	other.Namespace = namespace
	return &other
}

// NewNamespace makes one more namespace with labels, and returns its name. It is deleted when the test is over.
func (e *Env) NewNamespace(labels map[string]string) string {
	e.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: e.Site.Name + "-", Labels: labels}}
	e.Must(e.Client.Create(e.Ctx, namespace))
	e.CleanUp(namespace)
	e.Site.owns.own(namespace.Name, e.Name())
	if e.Site.Options.Bare { // nobody else makes the account that Pods get
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "default"}}
		e.Must(e.Client.Create(e.Ctx, account))
	}
	return namespace.Name
}

// CleanUp deletes an object when the test is over.
func (e *Env) CleanUp(o client.Object) {
	e.Cleanup(func() {
		// The test's own context has ended by now.
		if err := client.IgnoreNotFound(e.Client.Delete(context.Background(), o)); err != nil {
			e.Logf("deleting %s: %v", o.GetName(), err)
		}
	})
}

// Parse reads a manifest, strictly, into an object of the test's namespace.
func Parse[T client.Object](e *Env, into T, text string) T {
	e.Helper()
	e.Must(yaml.UnmarshalStrict([]byte(text), into))
	into.SetNamespace(e.Namespace)
	return into
}

// Make creates an object of any kind in the test's namespace, from a manifest.
func (e *Env) Make(text string) *unstructured.Unstructured {
	e.Helper()
	o := e.Manifest(text)
	e.Must(e.Client.Create(e.Ctx, o))
	return o
}

// Manifest reads an object of any kind, of the test's namespace.
func (e *Env) Manifest(text string) *unstructured.Unstructured {
	e.Helper()
	o := &unstructured.Unstructured{}
	e.Must(yaml.UnmarshalStrict([]byte(text), &o.Object))
	o.SetNamespace(e.Namespace)
	return o
}

// Read reads an object of the test's namespace.
func (e *Env) Read(name string, into client.Object) {
	e.Helper()
	e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, into))
}

// Pods returns all Pods of the test's namespace, in no particular order; when the test is over, too.
func (e *Env) Pods() []corev1.Pod {
	e.Helper()
	var list corev1.PodList
	e.Must(e.Client.List(e.Afterwards(), &list, client.InNamespace(e.Namespace)))
	return list.Items
}

// Events returns the events about an object of the test's namespace, or about one of the whole cluster.
func (e *Env) Events(name string) []corev1.Event {
	e.Helper()
	var all []corev1.Event
	for _, namespace := range []string{e.Namespace, metav1.NamespaceDefault} { // that of what is in no namespace
		var list corev1.EventList
		e.Must(e.Client.List(e.Ctx, &list, client.InNamespace(namespace)))
		all = append(all, list.Items...)
	}
	return slices.DeleteFunc(all, func(event corev1.Event) bool {
		about := event.InvolvedObject
		return about.Name != name || (about.Namespace != e.Namespace && about.Namespace != "")
	})
}

// Reasons returns the reason of each of these events.
func (e *Env) Reasons(name string) []string {
	e.Helper()
	var reasons []string
	for _, event := range e.Events(name) {
		reasons = append(reasons, event.Reason)
	}
	return reasons
}

// CrashManager kills the manager of the site and starts another one, which is ready when this returns. The test has to run alone.
func (e *Env) CrashManager() {
	e.Helper()
	e.Site.Manager.Kill()
	e.Must(e.Site.Relaunch(e.Ctx))
}

// ManagerSeconds returns the CPU time that the manager of the site has used, in seconds.
func (e *Env) ManagerSeconds() float64 {
	e.Helper()
	used, err := cluster.CPUSeconds(e.Site.Manager.PID())
	e.Must(err)
	return used
}

// AcceptsExamples checks that the API server takes every example whose file name matches a pattern, and knows all of its fields.
func (e *Env) AcceptsExamples(pattern string) {
	e.Helper()
	for file, text := range e.Examples(pattern) {
		if err := e.Client.Create(e.Ctx, e.Manifest(text), client.DryRunAll,
			client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			e.Errorf("creating what %s says: %v", file, err)
		}
	}
}

// Examples returns the examples whose file names match a pattern, by file name. There has to be one.
func (t *Test) Examples(pattern string) map[string]string {
	t.Helper()
	root, err := cluster.Root()
	t.Must(err)
	files, err := filepath.Glob(filepath.Join(root, "examples", pattern))
	t.Must(err)
	if len(files) == 0 {
		t.Fatalf("there are no examples %s", pattern)
	}
	out := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		t.Must(err)
		out[filepath.Base(file)] = string(text)
	}
	return out
}
