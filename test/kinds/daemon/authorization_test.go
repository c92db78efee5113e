package daemon

import (
	"os"
	"path/filepath"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// TestAuthorizationConfiguration evaluates the conditions that are shipped as an API server does, without one: what matches is refused.
func TestAuthorizationConfiguration(t *testing.T) {
	root, err := cluster.Root()
	must(t, err)
	text, err := os.ReadFile(filepath.Join(root, "config", "daemon", "authorization.yaml"))
	must(t, err)
	var shipped struct {
		Authorizers []struct {
			Webhook struct {
				MatchConditions []authorizationcel.SubjectAccessReviewMatchCondition `json:"matchConditions"`
			} `json:"webhook"`
		} `json:"authorizers"`
	}
	must(t, yaml.Unmarshal(text, &shipped))
	matcher := authorizationcel.CELMatcher{UsesFieldSelector: true, UsesLabelSelector: true}
	for _, condition := range shipped.Authorizers[0].Webhook.MatchConditions {
		compiled, err := authorizationcel.NewDefaultCompiler().CompileCELExpression(&condition)
		must(t, err)
		matcher.CompilationResults = append(matcher.CompilationResults, compiled)
	}
	const daemon, nodeName = "system:serviceaccount:kruise-system:kruise-daemon", "authentication.kubernetes.io/node-name"
	mine := map[string]authorizationv1.ExtraValue{nodeName: {"mine"}}
	field := func(key, value string) *authorizationv1.FieldSelectorAttributes {
		return &authorizationv1.FieldSelectorAttributes{
			Requirements: []metav1.FieldSelectorRequirement{{Key: key, Operator: metav1.FieldSelectorOpIn, Values: []string{value}}},
		}
	}
	label := func(value string) *authorizationv1.LabelSelectorAttributes {
		return &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{
			{Key: "crr.apps.kruise.io/active", Operator: metav1.LabelSelectorOpIn, Values: []string{"true"}},
			{Key: "crr.apps.kruise.io/node-name", Operator: metav1.LabelSelectorOpIn, Values: []string{value}},
		}}
	}
	type attributes = authorizationv1.ResourceAttributes
	for name, tc := range map[string]struct {
		user    string
		extra   map[string]authorizationv1.ExtraValue
		request attributes
		refused bool
	}{
		"Pods of its node":         {daemon, mine, attributes{Verb: "list", Resource: "pods", FieldSelector: field("spec.nodeName", "mine")}, false},
		"Pods of another node":     {daemon, mine, attributes{Verb: "watch", Resource: "pods", FieldSelector: field("spec.nodeName", "other")}, true},
		"all Pods":                 {daemon, mine, attributes{Verb: "list", Resource: "pods"}, true},
		"its NodeImage":            {daemon, mine, attributes{Verb: "watch", Resource: "nodeimages", FieldSelector: field("metadata.name", "mine")}, false},
		"another NodeImage":        {daemon, mine, attributes{Verb: "list", Resource: "nodeimages", FieldSelector: field("metadata.name", "other")}, true},
		"its probes":               {daemon, mine, attributes{Verb: "list", Resource: "nodepodprobes", FieldSelector: field("metadata.name", "mine")}, false},
		"all probes":               {daemon, mine, attributes{Verb: "list", Resource: "nodepodprobes"}, true},
		"restarts of its node":     {daemon, mine, attributes{Verb: "list", Resource: "containerrecreaterequests", LabelSelector: label("mine")}, false},
		"restarts of another node": {daemon, mine, attributes{Verb: "list", Resource: "containerrecreaterequests", LabelSelector: label("other")}, true},
		"all restarts":             {daemon, mine, attributes{Verb: "list", Resource: "containerrecreaterequests"}, true},
		"a token of no node":       {daemon, nil, attributes{Verb: "list", Resource: "pods", FieldSelector: field("spec.nodeName", "mine")}, true},
		"a status of its own":      {daemon, mine, attributes{Verb: "patch", Resource: "nodeimages", Subresource: "status", Name: "mine"}, false}, // policies judge writes
		"an event":                 {daemon, mine, attributes{Verb: "create", Resource: "events"}, false},
		"somebody else":            {"jane", nil, attributes{Verb: "list", Resource: "pods"}, false},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: tc.user, Extra: tc.extra, ResourceAttributes: &tc.request,
		}}
		if refused, err := matcher.Eval(t.Context(), review); err != nil || refused != tc.refused {
			t.Errorf("%s: refused %t, %v, want %t", name, refused, err, tc.refused)
		}
	}
}
