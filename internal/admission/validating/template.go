package validating

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// claimNames checks the names of claim templates: the names of claims and of volumes are made of them.
func claimNames(claims []corev1.PersistentVolumeClaim, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i := range claims {
		at, name := path.Index(i).Child("metadata", "name"), claims[i].Name
		switch {
		case name == "":
			errs = append(errs, field.Required(at, "name the volume that the claim stands for"))
		case seen.Has(name):
			errs = append(errs, field.Duplicate(at, name))
		default:
			for _, message := range validation.IsDNS1123Label(name) {
				errs = append(errs, field.Invalid(at, name, message))
			}
		}
		seen.Insert(name)
	}
	return errs
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
