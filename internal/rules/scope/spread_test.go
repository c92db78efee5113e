package scope_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/scope"
)

func spreadOf(namespace, apiVersion, kind, name string) scope.SpreadInterest {
	return scope.OfTarget(namespace, &v1beta1.SpreadTargetReference{APIVersion: apiVersion, Kind: kind, Name: name})
}

func TestSpreadExpression(t *testing.T) {
	if got := scope.SpreadExpression(nil); got != "" {
		t.Errorf("of no interests: %s", got)
	}
	got := scope.SpreadExpression([]scope.SpreadInterest{
		spreadOf("shop", "apps/v1", "Deployment", "web"), spreadOf("shop", "apps/v1", "Deployment", "web"), spreadOf("play", "apps.kruise.io/v1alpha1", "CloneSet", "db"),
		spreadOf("train", "example.com/v1", "Job", "x"),
	})
	const want = `has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller && (
request.namespace == "play" && o.kind == "CloneSet" && o.name == "db" ||
request.namespace == "shop" && o.kind == "ReplicaSet" && o.name.startsWith("web-") ||
request.namespace == "train"))`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	var many []scope.SpreadInterest
	for i := range 400 {
		many = append(many, spreadOf("shop", "apps/v1", "Deployment", fmt.Sprint("a-workload-of-many-", i)))
	}
	if got := scope.SpreadExpression(many); !strings.HasSuffix(got, "(\nrequest.namespace == \"shop\"))") {
		t.Errorf("of many workloads: %s", got)
	}
	for i := range 1000 {
		many = append(many, spreadOf(fmt.Sprint("a-namespace-of-many-", i), "apps/v1", "Deployment", "web"))
	}
	if got := scope.SpreadExpression(many); !strings.HasSuffix(got, "(\ntrue))") {
		t.Errorf("of many namespaces: %s", got)
	}
}

// TestOfWorkloadSpread: one that is on its way out has no interest.
func TestOfWorkloadSpread(t *testing.T) {
	s := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
	if _, ok := scope.OfWorkloadSpread(s); ok {
		t.Error("one without a target has an interest")
	}
	s.Spec.TargetReference = &v1beta1.SpreadTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	if got, ok := scope.OfWorkloadSpread(s); !ok || got != spreadOf("shop", "apps/v1", "Deployment", "web") {
		t.Errorf("got %v, %v", got, ok)
	}
	s.DeletionTimestamp = new(metav1.Now())
	if _, ok := scope.OfWorkloadSpread(s); ok {
		t.Error("one on its way out has an interest")
	}
}
