package revision

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// SubsetData returns the bytes of the revision of what the workloads of a UnitedDeployment are made of: a strategic merge patch that
// replaces the template. Topology is no part of it.
//
// The libraries of another version may write the same template otherwise: stored revisions are compared by what they mean, so that they
// keep their names.
func SubsetData(template *v1beta1.SubsetTemplate) ([]byte, error) {
	encoded, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encoding the template: %w", err)
	}
	fields := map[string]any{}
	if err := decodeNumbers(encoded, &fields); err != nil {
		return nil, fmt.Errorf("decoding the template: %w", err)
	}
	fields["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
}

// SubsetTemplate returns what SubsetData has stored.
func SubsetTemplate(rev *appsv1.ControllerRevision) (*v1beta1.SubsetTemplate, error) {
	template, ok := subsetsIn(rev.Data.Raw)
	if !ok {
		return nil, fmt.Errorf("revision %s holds no template of subsets", rev.Name)
	}
	return template, nil
}

// subsetsIn returns the template in the bytes of SubsetData; false for other bytes.
func subsetsIn(data []byte) (*v1beta1.SubsetTemplate, bool) {
	names := []string{"statefulSetTemplate", "advancedStatefulSetTemplate", "cloneSetTemplate", "deploymentTemplate"}
	if !slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(data, []byte(`"`+name+`"`)) }) {
		return nil, false
	}
	var s struct {
		Spec struct {
			Template v1beta1.SubsetTemplate `json:"template"`
		} `json:"spec"`
	}
	if json.Unmarshal(data, &s) != nil || equality.Semantic.DeepEqual(s.Spec.Template, v1beta1.SubsetTemplate{}) {
		return nil, false
	}
	return &s.Spec.Template, true
}

// sameSubsets reports whether both bytes hold the same template of subsets; false also for ok where neither does.
func sameSubsets(a, b []byte) (same, ok bool) {
	left, isLeft := subsetsIn(a)
	right, isRight := subsetsIn(b)
	return isLeft && isRight && equality.Semantic.DeepEqual(left, right), isLeft || isRight
}
