package convert

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/util/json" // whole numbers stay whole

	"github.com/seed-69ecc383/kruise/api/keys"
)

// imageListTemplate is the field of spec.template that only the hub version has.
const imageListTemplate = "imageListPullJobTemplate"

// advancedCronJobToHub takes the template that an annotation keeps back into its field. One that can't be read stays where it is: the
// validation then finds that there is no template.
func advancedCronJobToHub(src map[string]any) (map[string]any, error) {
	text, kept := annotationsOf(src)[keys.ImageListPullJobTemplate].(string)
	if !kept {
		return src, nil
	}
	var template map[string]any
	if json.Unmarshal([]byte(text), &template) != nil {
		return src, nil
	}
	out := withTemplate(src, func(fields map[string]any) { fields[imageListTemplate] = template })
	return withAnnotations(out, func(annotations map[string]any) { delete(annotations, keys.ImageListPullJobTemplate) }), nil
}

// advancedCronJobFromHub keeps in an annotation what the older version has no field for: an object that could not be read in it would keep
// all others of its namespace from being listed.
func advancedCronJobFromHub(src map[string]any) (map[string]any, error) {
	spec, _ := src["spec"].(map[string]any)
	fields, _ := spec["template"].(map[string]any)
	template, has := fields[imageListTemplate]
	if !has {
		return withAnnotations(src, func(annotations map[string]any) { delete(annotations, keys.ImageListPullJobTemplate) }), nil
	}
	text, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", imageListTemplate, err)
	}
	out := withTemplate(src, func(fields map[string]any) { delete(fields, imageListTemplate) })
	return withAnnotations(out, func(annotations map[string]any) { annotations[keys.ImageListPullJobTemplate] = string(text) }), nil
}

func annotationsOf(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}

// withTemplate returns the object with a changed spec.template; the object itself stays as it is.
func withTemplate(object map[string]any, change func(map[string]any)) map[string]any {
	spec, _ := object["spec"].(map[string]any)
	fields, _ := spec["template"].(map[string]any)
	fields = cloned(fields)
	change(fields)
	out, changed := cloned(object), cloned(spec)
	changed["template"], out["spec"] = fields, changed
	return out
}

// withAnnotations returns the object with changed annotations; the object itself stays as it is.
func withAnnotations(object map[string]any, change func(map[string]any)) map[string]any {
	annotations := cloned(annotationsOf(object))
	change(annotations)
	metadata, _ := object["metadata"].(map[string]any)
	out, changed := cloned(object), cloned(metadata)
	delete(changed, "annotations")
	if len(annotations) > 0 {
		changed["annotations"] = annotations
	}
	out["metadata"] = changed
	return out
}

func cloned(m map[string]any) map[string]any {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]any{}
	}
	return out
}
