package admission

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const minimal = `
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: nginx}]}}
`

// TestTheSchemaAloneHolds: these rules need no webhook, and so hold while there is no manager.
func TestTheSchemaAloneHolds(t *testing.T) {
	s := newServer(t)
	for name, tc := range map[string]struct {
		spec string // further lines of the spec
		want string // "" if it is allowed
	}{
		"a minimal set":               {},
		"negative replicas":           {"replicas: -1", "spec.replicas: Invalid value: -1"},
		"an unknown strategy":         {"updateStrategy: {type: Never}", `spec.updateStrategy.type: Unsupported value: "Never"`},
		"an unknown policy":           {"updateStrategy: {rollingUpdate: {podUpdatePolicy: Magic}}", `spec.updateStrategy.rollingUpdate.podUpdatePolicy: Unsupported value: "Magic"`},
		"a deadline too early":        {"progressDeadlineSeconds: 5\n  minReadySeconds: 5", "spec.progressDeadlineSeconds: Invalid value"},
		"a number without a percent":  {`updateStrategy: {rollingUpdate: {partition: "5"}}`, "spec.updateStrategy.rollingUpdate.partition: Invalid value"},
		"a negative number":           {`updateStrategy: {rollingUpdate: {maxSurge: -5}}`, "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value"},
		"a fraction of a percent":     {`updateStrategy: {rollingUpdate: {partition: 12.5%}}`, ""},
		"nothing can move":            {`updateStrategy: {rollingUpdate: {maxUnavailable: 0%, maxSurge: 0}}`, "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value"},
		"nothing has to move":         {"replicas: 0\n  updateStrategy: {rollingUpdate: {maxUnavailable: 0}}", ""},
		"only surge can move":         {`updateStrategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}`, ""},
		"nothing moves by itself":     {`updateStrategy: {type: OnDelete, rollingUpdate: {maxUnavailable: 0}}`, ""},
		"surge in place only":         {`updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly, maxSurge: 10%}}`, "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value"},
		"no surge in place only":      {`updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly, maxSurge: 0%}}`, ""},
		"parallelism as a percentage": {`updateStrategy: {rollingUpdate: {inPlaceUpdateStrategy: {imagePreDownloadParallelism: 10%}}}`, "imagePreDownloadParallelism: Invalid value"},
		"parallelism as text":         {`updateStrategy: {rollingUpdate: {inPlaceUpdateStrategy: {imagePreDownloadParallelism: "10"}}}`, ""},
		"a weight too heavy":          {`updateStrategy: {rollingUpdate: {priorityStrategy: {weightPriority: [{weight: 101, matchSelector: {}}]}}}`, "weight: Invalid value: 101"},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.Client.Create(s.ctx, s.parse("v1beta1", minimal+"  "+tc.spec), client.DryRunAll)
			wantError(t, err, tc.want)
		})
	}
	t.Run("an empty selector", func(t *testing.T) {
		o := s.parse("v1beta1", minimal)
		s.must(unstructured.SetNestedMap(o.Object, map[string]any{}, "spec", "selector"))
		wantError(t, s.Client.Create(s.ctx, o, client.DryRunAll), "spec.selector: Invalid value: empty selector is invalid for cloneset")
	})
	t.Run("an unknown way of updating, older", func(t *testing.T) {
		err := s.Client.Create(s.ctx, s.parse("v1alpha1", minimal+"  updateStrategy: {type: Magic}"), client.DryRunAll)
		wantError(t, err, `spec.updateStrategy.type: Unsupported value: "Magic": supported values: "ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete"`)
	})
	t.Run("another selector", func(t *testing.T) {
		o := s.parse("v1beta1", minimal)
		s.must(s.Client.Create(s.ctx, o))
		s.must(unstructured.SetNestedField(o.Object, "api", "spec", "selector", "matchLabels", "app"))
		wantError(t, s.Client.Update(s.ctx, o), "spec.selector: Forbidden: is immutable")
	})
}

// wantError checks for an ordinary 422 that says want; an empty want means no error.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "":
		if err != nil {
			t.Errorf("refused: %v", err)
		}
	case err == nil || !strings.Contains(err.Error(), want):
		t.Errorf("got %v, want %s", err, want)
	case apierrors.ReasonForError(err) != "Invalid" || codeOf(err) != http.StatusUnprocessableEntity:
		t.Errorf("got reason %s and code %d, want 422 Invalid", apierrors.ReasonForError(err), codeOf(err))
	}
}

func codeOf(err error) int32 {
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		return 0
	}
	return status.Status().Code
}
