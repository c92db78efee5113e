package validating

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TemplateChecker judges Pod templates.
type TemplateChecker interface {
	// Check judges a template, as JSON, for a namespace. The fields of the errors begin with "template".
	Check(ctx context.Context, namespace string, template map[string]any) Verdict
}

// Verdict is what there is to say about a template.
type Verdict struct {
	Errors   field.ErrorList
	Warnings []string
}

func (v Verdict) findings() findings { return findings{errors: v.Errors, warnings: v.Warnings} }

// NewTemplateChecker returns a checker that lets the API server judge: it asks it to create a PodTemplate without storing it, so that the
// rules are those of the cluster's own version. It needs the right to create podtemplates.
//
// A template is not refused because it could not be judged: the user is warned instead, and the API server will judge the Pods.
func NewTemplateChecker(config *rest.Config) (TemplateChecker, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = nil
	config.WarningHandlerWithContext = collector{}
	// No discovery is needed for one kind whose path never changes.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PodTemplate"), meta.RESTScopeNamespace)
	writer, err := client.New(config, client.Options{Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("creating the client that checks templates: %w", err)
	}
	return dryRun{writer}, nil
}

type dryRun struct{ client.Writer }

func (d dryRun) Check(ctx context.Context, namespace string, template map[string]any) Verdict {
	heard := &overheard{}
	ctx = context.WithValue(ctx, warningsKey{}, heard)
	err := d.Create(ctx, asPodTemplate(namespace, template), client.DryRunAll, client.FieldValidation(metav1.FieldValidationWarn))
	verdict := Verdict{Warnings: heard.texts}
	var status apierrors.APIStatus
	switch {
	case err == nil:
	case apierrors.IsInvalid(err) && errors.As(err, &status) && status.Status().Details != nil:
		for _, cause := range status.Status().Details.Causes {
			verdict.Errors = append(verdict.Errors, fieldError(cause))
		}
	case apierrors.IsInvalid(err):
		verdict.Errors = field.ErrorList{{Type: field.ErrorTypeInvalid, Field: "template", BadValue: field.OmitValueType{}, Detail: err.Error()}}
	default: // such as a webhook of the cluster that can't be asked without storing
		verdict.Warnings = append(verdict.Warnings, fmt.Sprintf("spec.template was not checked: %v", err))
	}
	return verdict
}

// fieldError turns a cause in an answer back into the error it was made of. The value is part of the text already.
func fieldError(cause metav1.StatusCause) *field.Error {
	err := &field.Error{Type: field.ErrorType(cause.Type), Field: cause.Field, BadValue: field.OmitValueType{}}
	// The text of an error begins with its type, which it will be given again.
	err.Detail = strings.TrimPrefix(strings.TrimPrefix(cause.Message, err.ErrorBody()), ": ")
	return err
}

// miscellaneous is the code of every warning that an API server sends.
const miscellaneous = 299

type warningsKey struct{}

// overheard is what the API server warned of during one request.
type overheard struct {
	mu    sync.Mutex
	texts []string
}

// collector hands each warning to the request that it belongs to.
type collector struct{}

func (collector) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, text string) {
	heard, ok := ctx.Value(warningsKey{}).(*overheard)
	if !ok || code != miscellaneous || text == "" {
		return
	}
	heard.mu.Lock()
	defer heard.mu.Unlock()
	heard.texts = append(heard.texts, text)
}
