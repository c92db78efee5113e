package defaulting

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/internal/admission/patch"
	"github.com/seed-69ecc383/kruise/internal/admission/request"
)

// NodeImage returns the handler that fills in when tags were asked for, and sorts them, for both versions. What jobs ask for has and is
// that already.
func NodeImage(now func() time.Time) admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, from admission.Request) admission.Response {
		u, err := request.Parse(from.Object)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the object: %w", err))
		}
		images, _, err := unstructured.NestedMap(u.Object, "spec", "images")
		if err != nil || u.GetDeletionTimestamp() != nil {
			return admission.Allowed("") // the schema says what is wrong
		}
		var operations []jsonpatch.Operation
		for _, name := range slices.Sorted(maps.Keys(images)) {
			image, _ := images[name].(map[string]any)
			tags, isList := image["tags"].([]any)
			if after := completeTags(tags, now()); isList && !reflect.DeepEqual(tags, after) {
				operations = append(operations, jsonpatch.NewOperation("replace", "/spec/images/"+patch.Escape(name)+"/tags", after))
			}
		}
		return admission.Patched("", operations...)
	})
}

func completeTags(tags []any, now time.Time) []any {
	after, _ := runtime.DeepCopyJSONValue(tags).([]any)
	for i := range after {
		if tag, ok := after[i].(map[string]any); ok && tag["createdAt"] == nil {
			tag["createdAt"] = now.UTC().Format(time.RFC3339)
		}
	}
	slices.SortStableFunc(after, func(a, b any) int { return cmp.Compare(tagName(a), tagName(b)) })
	return after
}

func tagName(tag any) string {
	fields, _ := tag.(map[string]any)
	name, _ := fields["tag"].(string)
	return name
}
