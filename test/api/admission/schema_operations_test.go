package admission

// operationsSchema is what the schemas of PersistentPodState and ResourceDistribution say.
func operationsSchema() map[string]schemaCase {
	state := func(spec, want string) schemaCase {
		return schemaCase{kind: "PersistentPodState", spec: "{targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}, " + spec + "}", want: want}
	}
	target := func(target, want string) schemaCase {
		return schemaCase{kind: "PersistentPodState", spec: "{targetRef: {" + target + "}, requiredPersistentTopology: {keys: [a]}}", want: want}
	}
	older := state("requiredPersistentTopology: {nodeTopologyKeys: []}", "spec.requiredPersistentTopology.nodeTopologyKeys: Invalid value")
	older.version = "v1alpha1"
	spread := func(spec, want string) schemaCase {
		return schemaCase{kind: "ResourceDistribution", spec: "{" + spec + "}", want: want}
	}
	const resource = "targets: {}, resource: {apiVersion: v1, kind: Secret, metadata: {name: s}}"
	const from = "targets: {}, resourceFrom: {kind: Secret, namespace: a, name: s}"
	return map[string]schemaCase{
		"a required topology":             state("requiredPersistentTopology: {keys: [a]}", ""),
		"a preferred topology":            state("preferredPersistentTopology: [{weight: 1, preference: {keys: [a]}}]", ""),
		"no topology":                     state("maxAgeSeconds: 1", "must have requiredPersistentTopology, preferredPersistentTopology or both"),
		"a topology without keys":         state("requiredPersistentTopology: {keys: []}", "spec.requiredPersistentTopology.keys: Invalid value"),
		"an older topology without keys":  older,
		"a weight that is too small":      state("preferredPersistentTopology: [{weight: 0, preference: {keys: [a]}}]", "spec.preferredPersistentTopology[0].weight: Invalid value"),
		"a weight that is too large":      state("preferredPersistentTopology: [{weight: 101, preference: {keys: [a]}}]", "spec.preferredPersistentTopology[0].weight: Invalid value"),
		"an unknown retention":            state("requiredPersistentTopology: {keys: [a]}, persistentPodStateRetentionPolicy: Never", "Unsupported value: \"Never\""),
		"an unknown action":               state("requiredPersistentTopology: {keys: [a]}, fallback: {action: Move}", "spec.fallback.action: Unsupported value: \"Move\""),
		"a target without a name":         target("apiVersion: apps/v1, kind: StatefulSet, name: ''", "spec.targetRef.name: Invalid value"),
		"a target with a quote":           target("apiVersion: apps/v1, kind: StatefulSet, name: 'a\"b'", "spec.targetRef.name: Invalid value"),
		"a kind that is none":             target("apiVersion: apps/v1, kind: 'A B', name: web", "spec.targetRef.kind: Invalid value"),
		"a version that is none":          target("apiVersion: a/b/c, kind: A, name: web", "spec.targetRef.apiVersion: Invalid value"),
		"a resource":                      spread(resource, ""),
		"a source":                        spread(from, ""),
		"neither of them":                 spread("targets: {}", "must have either resource or resourceFrom"),
		"both of them":                    spread(resource+", resourceFrom: {kind: Secret, namespace: a, name: s}", "must have either resource or resourceFrom"),
		"a resource of another kind":      spread("targets: {}, resource: {apiVersion: v1, kind: Pod, metadata: {name: s}}", "unknown or unsupported resource GroupKind, only support [Secret, ConfigMap, "),
		"a resource of another group":     spread("targets: {}, resource: {apiVersion: a/v1, kind: Secret, metadata: {name: s}}", "only support [Secret, ConfigMap, "),
		"a NetworkPolicy":                 spread("targets: {}, resource: {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: s}, spec: {podSelector: {}}}", ""),
		"a NetworkPolicy of no group":     spread("targets: {}, resource: {apiVersion: v1, kind: NetworkPolicy, metadata: {name: s}}", "only support [Secret, ConfigMap, "),
		"a resource without a name":       spread("targets: {}, resource: {apiVersion: v1, kind: Secret, metadata: {}}", "must have metadata.name"),
		"a namespace that is none":        spread("resource: {apiVersion: v1, kind: Secret, metadata: {name: s}}, targets: {includedNamespaces: {list: [{name: A}]}}", "spec.targets.includedNamespaces.list[0].name: Invalid value"),
		"an unknown policy for conflicts": spread(resource+", conflictPolicy: Win", "spec.conflictPolicy: Unsupported value: \"Win\""),
		"more than all namespaces":        spread(resource+", rollout: {percent: 101}", "spec.rollout.percent: Invalid value"),
	}
}
