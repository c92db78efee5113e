package convert

import (
	"maps"
	"slices"
)

// The versions of a UnitedDeployment differ in status alone. What v1beta1 says of each subset in subsetStatuses, v1alpha1 says also in maps
// by the names of subsets. All is done to decoded JSON, so that fields that this build does not know survive.

// unitedDeploymentToHub takes what the maps say over to the entries of the subsets. Entries that are missing are added.
func unitedDeploymentToHub(src map[string]any) (map[string]any, error) {
	status, _ := src["status"].(map[string]any)
	rollout, _ := status["updateStatus"].(map[string]any)
	out := map[string]any{}
	if revision, told := rollout["updatedRevision"]; told && revision != "" {
		out["updatedRevision"] = revision
	}
	subsets := clonedSubsets(status)
	replicas, _ := status["subsetReplicas"].(map[string]any)
	partitions, _ := rollout["currentPartitions"].(map[string]any)
	subsets = noteOfSubsets(subsets, "replicas", replicas)
	subsets = noteOfSubsets(subsets, "partition", partitions)
	if len(subsets) > 0 {
		out["subsetStatuses"] = subsets
	}
	return withStatus(src, out), nil
}

// unitedDeploymentFromHub makes the maps of the entries.
func unitedDeploymentFromHub(src map[string]any) (map[string]any, error) {
	status, _ := src["status"].(map[string]any)
	out, rollout := map[string]any{}, map[string]any{}
	if revision, told := status["updatedRevision"]; told {
		rollout["updatedRevision"] = revision
	}
	replicas, partitions := map[string]any{}, map[string]any{}
	subsets := clonedSubsets(status)
	for _, s := range subsets {
		subset, _ := s.(map[string]any)
		if name, _ := subset["name"].(string); name != "" {
			replicas[name], partitions[name] = numberIn(subset, "replicas"), numberIn(subset, "partition")
		}
	}
	if len(replicas) > 0 {
		rollout["currentPartitions"], out["subsetReplicas"] = partitions, replicas
	}
	if len(subsets) > 0 {
		out["subsetStatuses"] = subsets
	}
	if len(rollout) > 0 {
		out["updateStatus"] = rollout
	}
	return withStatus(src, out), nil
}

func withStatus(object, status map[string]any) map[string]any {
	out := cloned(object)
	out["status"] = status
	return out
}

// clonedSubsets returns entries that may be changed.
func clonedSubsets(status map[string]any) []any {
	entries, _ := status["subsetStatuses"].([]any)
	out := make([]any, len(entries))
	for i, entry := range entries {
		out[i] = entry
		if fields, ok := entry.(map[string]any); ok {
			out[i] = maps.Clone(fields)
		}
	}
	return out
}

// noteOfSubsets writes a field of each subset that the map knows, where it says otherwise. A number that is missing is 0.
func noteOfSubsets(subsets []any, field string, values map[string]any) []any {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		at := slices.IndexFunc(subsets, func(s any) bool {
			fields, _ := s.(map[string]any)
			return fields["name"] == name
		})
		if at < 0 {
			subsets, at = append(subsets, map[string]any{"name": name}), len(subsets)
		}
		fields, _ := subsets[at].(map[string]any)
		if numberIn(fields, field) != values[name] {
			fields[field] = values[name]
		}
	}
	return subsets
}

func numberIn(fields map[string]any, field string) any {
	if value, told := fields[field]; told {
		return value
	}
	return int64(0)
}
