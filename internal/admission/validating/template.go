package validating

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
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
		verdict.Errors = field.ErrorList{field.Invalid(field.NewPath("template"), field.OmitValueType{}, err.Error())}
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

// claimNames checks the names of claim templates: the names of claims and of volumes are made of them.
func (f *findings) claimNames(path *field.Path, claims []corev1.PersistentVolumeClaim) {
	seen := sets.New[string]()
	for i := range claims {
		at, name := path.Index(i).Child("metadata", "name"), claims[i].Name
		switch {
		case name == "":
			f.required(at, "name the volume that the claim stands for")
		case seen.Has(name):
			f.add(field.ErrorList{field.Duplicate(at, name)})
		default:
			f.messages(at, name, validation.IsDNS1123Label(name))
		}
		seen.Insert(name)
	}
}

// withClaims returns the template with a volume for each claim template, as its Pods will have. A volume of the same name is replaced where
// it stands, so that the places of the others stay what the user sees.
func withClaims(template map[string]any, claims []corev1.PersistentVolumeClaim) map[string]any {
	if len(claims) == 0 {
		return template
	}
	out := runtime.DeepCopyJSON(template)
	spec, ok := out["spec"].(map[string]any)
	if !ok {
		return out
	}
	volumes, _ := spec["volumes"].([]any)
	for i := range claims {
		name := claims[i].Name
		volume := map[string]any{"name": name, "persistentVolumeClaim": map[string]any{"claimName": name}}
		at := slices.IndexFunc(volumes, func(v any) bool {
			m, _ := v.(map[string]any)
			return m["name"] == name
		})
		if at >= 0 {
			volumes[at] = volume
		} else {
			volumes = append(volumes, volume)
		}
	}
	spec["volumes"] = volumes
	return out
}

// judge asks the API server about a template, and names the fields of its answer by where the template stands.
func judge(ctx context.Context, checker TemplateChecker, namespace string, template map[string]any, path *field.Path) Verdict {
	verdict := checker.Check(ctx, namespace, template)
	for _, err := range verdict.Errors {
		if rest, ok := strings.CutPrefix(err.Field, "template"); ok {
			err.Field = path.String() + rest
		} else {
			err.Field = path.String()
		}
	}
	return verdict
}

// pointer appends a JSON pointer to a path: /spec/containers/0/image becomes spec.containers[0].image.
func pointer(path *field.Path, pointer string) *field.Path {
	for _, step := range strings.Split(strings.Trim(pointer, "/"), "/") {
		if step == "" {
			continue
		}
		if index, isIndex := parseIndex(step); isIndex {
			path = path.Index(index)
		} else {
			path = path.Child(strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		}
	}
	return path
}

func parseIndex(step string) (int, bool) {
	n := 0
	for _, c := range step {
		if c < '0' || c > '9' || n > 1e6 {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// asPodTemplate returns the object that the API server is asked about.
func asPodTemplate(namespace string, template map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "PodTemplate",
		"metadata":   map[string]any{"generateName": "kruise-check-", "namespace": namespace},
		"template":   template,
	}}
}
