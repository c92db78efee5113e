package protection

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestDeletionOfWhatABindingSelects is refused without a label on each object, until the object is unlocked or its namespace goes.
func TestDeletionOfWhatABindingSelects(t *testing.T) {
	const selected = "forbidden by ResourcesProtectionDeletion for a binding that selects it"
	g := newGuard(t)
	defer g.apply("selected.yaml")()
	kept, counted := g.NewNamespace(map[string]string{"kept": g.Namespace}), g.NewNamespace(map[string]string{"counted": g.Namespace})
	defer g.bind("", kept, "kept")()
	defer g.bind("-cascading", counted, "counted")()
	dry := func(o client.Object) error { return g.Client.Delete(g.Ctx, o, client.DryRunAll) }

	const settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}"
	in := &guard{&env{g.In(kept)}}
	o := in.Make(settings)
	g.Eventually("an object is kept", func() error {
		return refusedWith(dry(o), selected, "write the annotation policy.kruise.io/delete-protection-unlock=settings on it first")
	})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kept}}
	g.Must(refusedWith(dry(namespace), selected))
	owned := in.Make(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [
		{apiVersion: v1, kind: ConfigMap, name: settings, uid: %s, controller: true}]}}`, o.GetUID()))
	g.Must(g.Client.Delete(g.Ctx, owned))
	g.unlock(o)
	g.goes(o)
	in.Make(settings)
	g.unlock(namespace)
	g.goes(namespace)
	g.Eventually("the namespace is gone with all that is in it", func() error {
		if err := g.Client.Get(g.Ctx, client.ObjectKeyFromObject(namespace), namespace); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is there (%w): %+v", err, namespace.Status.Conditions)
		}
		return nil
	})

	in = &guard{&env{g.In(counted)}}
	for _, s := range samples("counted") {
		if s.holds == "" || s.status != "" {
			continue
		}
		o := in.Make(s.text)
		g.Eventually(s.resource+" is kept", func() error { return refusedWith(dry(o), selected+" and "+s.holds) })
		g.Must(g.Client.Patch(g.Ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":0}}`))))
		g.goes(o)
	}
	g.Must(dry(in.Make(settings)))
	g.Must(dry(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: counted}}))
	g.Must(dry(g.Make(settings)))
}

// bind selects what is in a namespace, by a label of it that is the namespace of the test, and returns what ends that.
func (g *guard) bind(policy, name, label string) (remove func()) {
	g.Helper()
	o := g.Manifest(fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: %s}, spec: {
		policyName: kruise-deletion-protection-selected%s, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {%s: %s}},
		resourceRules: [
			{apiGroups: [""], apiVersions: ["*"], operations: [DELETE], resources: [namespaces, configmaps]},
			{apiGroups: [apps, apps.kruise.io], apiVersions: ["*"], operations: [DELETE], resources: ["*"]}]}}}`, name, policy, label, g.Namespace))
	o.SetNamespace("")
	g.Must(g.Client.Create(g.Ctx, o))
	return func() {
		g.Ctx = g.Afterwards()
		g.Must(g.Client.Delete(g.Ctx, o))
	}
}

// unlock writes the name of an object into its annotation.
func (g *guard) unlock(o client.Object) {
	g.Helper()
	g.Must(g.Client.Patch(g.Ctx, o, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"policy.kruise.io/delete-protection-unlock":"`+o.GetName()+`"}}}`))))
}
