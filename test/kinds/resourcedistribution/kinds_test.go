package resourcedistribution

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestFurtherKinds: those that the manager lists are copied as any, with what the API server sets in them and nothing written again; others are refused.
func TestFurtherKinds(t *testing.T) {
	e := newEnv(t)
	e.distribute(`resource: {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: closed}, spec: {podSelector: {}, ingress: [{ports: [{port: 80}]}]}}`,
		included(e.Namespace))
	e.says(1, 1, "")
	p := &networkingv1.NetworkPolicy{}
	e.Read("closed", p)
	if len(p.Spec.PolicyTypes) != 1 || p.Spec.Ingress[0].Ports[0].Protocol == nil {
		t.Errorf("it is %+v", p.Spec)
	}
	e.edit(included(e.Namespace, e.Namespace+"-not")) // which has all copies looked at
	e.says(2, 1, "NamespaceNotExists", e.Namespace+"-not")
	e.Always(2*time.Second, "nothing is written", func() error {
		now := &networkingv1.NetworkPolicy{}
		e.Read("closed", now)
		if now.ResourceVersion != p.ResourceVersion {
			return fmt.Errorf("it is at %s, and was at %s", now.ResourceVersion, p.ResourceVersion)
		}
		return nil
	})
	e.Must(e.Client.Patch(e.Ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ingress":[]}}`))))
	e.Eventually("an edit is taken back", func() error {
		e.Read("closed", p)
		if len(p.Spec.Ingress) != 1 {
			return fmt.Errorf("it is %+v", p.Spec)
		}
		return nil
	})
	if err := e.tryDistribute("v1beta1", `resourceFrom: {kind: ServiceAccount, namespace: default, name: default}`, included(e.Namespace)); err == nil ||
		!strings.Contains(err.Error(), "kind ServiceAccount is not distributed here") {
		t.Errorf("a kind that is not listed: %v", err)
	}
	e.onlyCopies()
}

// onlyCopies checks that the manager can't write a NetworkPolicy that is no copy, in spite of its rights.
func (e *env) onlyCopies() {
	e.Helper()
	config := rest.CopyConfig(e.Config)
	config.Impersonate.UserName = "system:serviceaccount:kruise-system:kruise-manager"
	as, err := client.New(config, client.Options{Scheme: e.Client.Scheme()})
	e.Must(err)
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "open"}}
	e.Eventually("the manager can't write what is no copy", func() error {
		if err := as.Create(e.Ctx, p.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "that are the copies of a ResourceDistribution") {
			return fmt.Errorf("the answer is %v", err) //nolint:errorlint // there may be none
		}
		return nil
	})
}

// TestCopiesOfAnotherName have further labels and annotations, too, which go when they are asked for no more.
func TestCopiesOfAnotherName(t *testing.T) {
	e := newEnv(t)
	e.distribute(configMap("one"), `copies: {name: settings, labels: {team: x}, annotations: {note: written}}`, included(e.Namespace))
	e.says(1, 1, "")
	c := &corev1.ConfigMap{}
	e.Read("settings", c)
	if c.Data["k"] != "one" || c.Labels["team"] != "x" || c.Labels["from"] != "rd" || c.Annotations["note"] != "written" {
		t.Errorf("the copy is %+v", c)
	}
	e.edit(`copies: {labels: {team: null}}, resource: {data: {k: two}}`)
	e.Eventually("the copy follows", func() error {
		e.Read("settings", c)
		if _, has := c.Labels["team"]; has || c.Data["k"] != "two" || c.Annotations["note"] != "written" {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
	e.lacks(e.Namespace)
	if err := e.tryEdit(`copies: {name: other}`); err == nil || !strings.Contains(err.Error(), "copies.name is immutable") {
		t.Errorf("another name: %v", err)
	}
	e.edit(`targets: {includedNamespaces: {list: []}}`)
	e.Eventually("a copy that nobody wants goes", func() error {
		err := e.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: "settings"}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{}})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}
