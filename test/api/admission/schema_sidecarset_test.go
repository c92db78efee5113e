package admission

func sidecarSetSchema() map[string]schemaCase {
	of := func(version, spec, want string) schemaCase {
		return schemaCase{kind: "SidecarSet", version: version, spec: "{selector: {matchLabels: {a: b}}, containers: [{name: a, image: a}]" + spec + "}", want: want}
	}
	one := func(container, want string) schemaCase {
		return schemaCase{kind: "SidecarSet", spec: "{selector: {matchLabels: {a: b}}, containers: [{name: a, image: a, " + container + "}]}", want: want}
	}
	named := of("", "", "metadata.name must be at most 63 letters, digits and dashes")
	named.name = "a.b"
	return map[string]schemaCase{
		"a minimal set":             {kind: "SidecarSet", spec: "{selector: {matchLabels: {a: b}}, containers: [{name: a, image: a}]}"},
		"a name with a dot":         named,
		"no selector":               {kind: "SidecarSet", spec: "{containers: [{name: a}]}", want: "spec.selector: Required value"},
		"an empty selector":         {kind: "SidecarSet", spec: "{selector: {}, containers: [{name: a}]}", want: "spec.selector: Invalid value: empty selector is not valid for sidecarset."},
		"an empty selector, older":  {kind: "SidecarSet", version: "v1alpha1", spec: "{selector: {}, containers: [{name: a}]}", want: "spec.selector: Invalid value: empty selector"},
		"every namespace":           of("", ", namespaceSelector: {}", "spec.namespaceSelector: Invalid value: must not be empty"),
		"no container":              {kind: "SidecarSet", spec: "{selector: {matchLabels: {a: b}}}", want: "spec.containers: Required value: containers or initContainers must have an item"},
		"init containers alone":     {kind: "SidecarSet", spec: "{selector: {matchLabels: {a: b}}, initContainers: [{name: a}]}"},
		"an unknown place":          one("podInjectPolicy: Middle", `spec.containers[0].podInjectPolicy: Unsupported value: "Middle"`),
		"an unknown way to share":   one("shareVolumePolicy: {type: half}", "spec.containers[0].shareVolumePolicy.type: Unsupported value"),
		"an unknown upgrade":        one("upgradeStrategy: {upgradeType: Warm}", "spec.containers[0].upgradeStrategy.upgradeType: Unsupported value"),
		"hot without an idle image": one("upgradeStrategy: {upgradeType: HotUpgrade}", "spec.containers[0].upgradeStrategy.hotUpgradeEmptyImage: Required value: HotUpgrade needs an image"),
		"hot":                       one("upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: b}", ""),
		"an unknown mode":           one("resourcesPolicy: {targetContainersMode: min, resourcesExpr: {limits: {cpu: cpu}}}", "targetContainersMode: Unsupported value"),
		"no expressions":            one("resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {}}", "limits or requests is needed"),
		"an unknown strategy":       of("", ", updateStrategy: {type: Never}", "spec.updateStrategy.type: Unsupported value"),
		"too many containers": {
			kind: "SidecarSet", spec: "{selector: {matchLabels: {a: b}}, containers: " + manyOf(101, "{name: a%d}") + "}",
			want: "spec.containers: Invalid value: must have at most 100 items",
		},
		"a percentage with a zero":     of("", ", updateStrategy: {partition: 050%}", "spec.updateStrategy.partition: Invalid value"),
		"too many percent":             of("", ", updateStrategy: {maxUnavailable: 101%}", "spec.updateStrategy.maxUnavailable: Invalid value"),
		"a negative partition":         of("", ", updateStrategy: {partition: -1}", "spec.updateStrategy.partition: Invalid value"),
		"a partition and a selector":   of("", ", updateStrategy: {partition: 1, selector: {matchLabels: {c: d}}}", "spec.updateStrategy.partition: Invalid value: must be 0 together with a selector"),
		"an empty selector of updates": of("", ", updateStrategy: {selector: {}}", "spec.updateStrategy.selector: Invalid value: must not be empty"),
		"no updates at all":            of("", ", updateStrategy: {type: NotUpdate, selector: {}, partition: 1}", ""),
		"no annotations":               of("", ", patchPodMetadata: [{patchPolicy: Retain}]", "spec.patchPodMetadata[0].annotations: Required value: name the annotations to write"),
		"an unknown patch policy":      of("", ", patchPodMetadata: [{annotations: {a: b}, patchPolicy: Add}]", "spec.patchPodMetadata[0].patchPolicy: Unsupported value"),
		"a revision without a name":    of("", ", injectionStrategy: {revision: {policy: Always}}", "revisionName or customVersion is needed"),
		"an unknown revision policy":   of("", ", injectionStrategy: {revision: {customVersion: a, policy: Some}}", "spec.injectionStrategy.revision.policy: Unsupported value"),
		"a custom version of blanks":   of("", `, customVersion: "a b"`, "spec.customVersion: Invalid value"),
	}
}

func sidecarSetRatchets() []ratchetCase {
	return []ratchetCase{
		{
			schemaCase: schemaCase{
				kind: "SidecarSet", want: "spec.patchPodMetadata[0].patchPolicy",
				spec: "{selector: {}, containers: [{name: a, image: a, upgradeStrategy: {upgradeType: HotUpgrade}}], patchPodMetadata: [{patchPolicy: Add}]}",
			},
			change: "spec: {updateStrategy: {paused: true}}", worse: "spec: {updateStrategy: {type: Never}}",
		},
		{
			schemaCase: schemaCase{kind: "SidecarSet", name: "a.b", spec: "{selector: {matchLabels: {a: b}}, containers: [{name: a, image: a}]}", want: "metadata.name must be"},
			change:     "spec: {containers: [{name: a, image: b}]}",
		},
	}
}
