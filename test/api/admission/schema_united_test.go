package admission

const unitedObject = `
apiVersion: apps.kruise.io/v1beta1
kind: UnitedDeployment
metadata: {namespace: default}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template: {deploymentTemplate: {metadata: {labels: {app: web}}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: nginx}]}}}}}
  topology: {subsets: [{name: a, replicas: 1, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [a]}]}}, {name: b}]}
`

func unitedDeploymentSchema() schema {
	const subsets, strategy, template = "spec.topology.subsets", "spec.topology.scheduleStrategy", "spec.template"
	const registry, elsewhere = "spec.topology.clusterRegistry", "[{name: a, targetCluster: {namespace: default, name: m}}]"
	of := func(field, more string) string {
		return "{" + field + ": {metadata: {labels: {app: web}}, spec: {" + more + "selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}}}}}"
	}
	const one = "set exactly one of statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate and deploymentTemplate"
	const kept, adaptive = "is immutable: add a subset of another name and remove this one", "{type: Adaptive, adaptive: {reserveUnschedulablePods: true}}"
	return schema{
		crd: "apps.kruise.io_uniteddeployments.yaml", object: unitedObject, harmless: edits{"spec.revisionHistoryLimit": "3"},
		creates: map[string]create{
			"a valid one":                   {},
			"no selector":                   {set: edits{"spec.selector": "~"}, want: "spec.selector: Required value", unstorable: true},
			"an empty selector":             {set: edits{"spec.selector": "{}"}, want: "spec.selector: Invalid value: empty selector is invalid for uniteddeployment"},
			"negative replicas":             {set: edits{"spec.replicas": "-1"}, want: "spec.replicas: Invalid value: -1", unstorable: true},
			"no template":                   {set: edits{template: "{}"}, want: "spec.template: Invalid value: " + one},
			"StatefulSets":                  {set: edits{template: of("statefulSetTemplate", "replicas: 3, ")}},
			"Advanced StatefulSets":         {set: edits{template: of("advancedStatefulSetTemplate", "")}},
			"CloneSets":                     {set: edits{template: of("cloneSetTemplate", "replicas: 3, ")}},
			"replicas in the template":      {set: edits{template: of("advancedStatefulSetTemplate", "replicas: 3, ")}, want: "spec.template.advancedStatefulSetTemplate.spec.replicas: Forbidden: may not be set", unstorable: true},
			"a partition in the template":   {set: edits{template: of("advancedStatefulSetTemplate", "updateStrategy: {rollingUpdate: {partition: 3}}, ")}, want: "spec.template.advancedStatefulSetTemplate.spec.updateStrategy: Forbidden: may not be set", unstorable: true},
			"a name with a dot":             {set: edits{subsets: "[{name: a.b}]"}, want: subsets + "[0].name: Invalid value"},
			"shares beside limits":          {set: edits{subsets: "[{name: a, replicas: 1}, {name: b, minReplicas: 1}]"}, want: subsets + ": Invalid value: replicas of one subset and minReplicas or maxReplicas of any exclude each other"},
			"no subset without a limit":     {set: edits{subsets: "[{name: a, maxReplicas: 1}]"}, want: subsets + ": Invalid value: at least one subset must have no maxReplicas"},
			"Adaptive with shares":          {set: edits{strategy: "{type: Adaptive}"}, want: subsets + ": Invalid value: replicas of a subset can't be used with the type Adaptive"},
			"an unknown strategy":           {set: edits{strategy: "{type: Magic}"}, want: strategy + `.type: Unsupported value: "Magic"`},
			"Adaptive with limits":          {set: edits{strategy: adaptive, subsets: "[{name: a, maxReplicas: 1}, {name: b}]"}},
			"StatefulSets are not reserved": {set: edits{strategy: adaptive, subsets: "[]", template: of("statefulSetTemplate", "")}, want: strategy + ".adaptive.reserveUnschedulablePods: Forbidden: can only be used with deploymentTemplate and cloneSetTemplate", unstorable: true},
			"a partition of no subset":      {set: edits{"spec.updateStrategy": "{manualUpdate: {partitions: {a: 1, c: 1}}}"}, want: "spec.updateStrategy.manualUpdate.partitions: Invalid value: every key must be the name of a subset", unstorable: true},
			"a partition of a subset":       {set: edits{"spec.updateStrategy": "{type: Manual, manualUpdate: {partitions: {a: 1}}}"}},
			"a subset in another cluster":   {set: edits{subsets: elsewhere, registry: "{}"}},
			"a cluster found nowhere":       {set: edits{subsets: elsewhere}, want: registry + ": Required value: is required where a subset has a targetCluster"},
			"a cluster found elsewhere":     {set: edits{subsets: elsewhere, registry: "{namespaces: [prod]}"}, want: subsets + ": Invalid value: the namespace of every targetCluster must be one of clusterRegistry.namespaces"},
			"a cluster without a namespace": {set: edits{subsets: "[{name: a, targetCluster: {name: m}}]", registry: "{namespaces: [prod]}"}},
			"a cluster of two names":        {set: edits{subsets: "[{name: a, targetCluster: {name: m/n}}]", registry: "{}"}, want: subsets + "[0].targetCluster.name: Invalid value"},
			"kubeconfigs":                   {set: edits{registry: "{clusterType: {apiVersion: v1, kind: Secret}}"}},
			"clusters of long ago":          {set: edits{registry: "{clusterType: {apiVersion: clusterregistry.k8s.io/v1alpha1, kind: Cluster}}"}, want: registry + ".clusterType.kind: Invalid value: must be ClusterProfile or Secret"},
			"a version of long ago":         {set: edits{registry: "{clusterType: {apiVersion: v2, kind: Secret}}"}, want: registry + ".clusterType.apiVersion: Invalid value: must be v1 for Secret"},
			"substitutes with Fixed":        {set: edits{registry: "{unreachablePolicy: Reallocate}"}, want: registry + ".unreachablePolicy: Invalid value: Reallocate needs scheduleStrategy.type Adaptive"},
			"substitutes with Adaptive":     {set: edits{registry: "{unreachablePolicy: Reallocate}", strategy: adaptive, subsets: "[]"}},
			"substitutes of StatefulSets":   {set: edits{registry: "{unreachablePolicy: Reallocate}", strategy: "{type: Adaptive}", subsets: "[]", template: of("statefulSetTemplate", "")}, want: registry + ".unreachablePolicy: Forbidden: Reallocate can only be used with deploymentTemplate and cloneSetTemplate", unstorable: true},
			"waves":                         {set: edits{"spec.updateStrategy": "{maxUnavailable: 10%, waves: [{name: canary, subsets: [a], pause: true}]}"}},
			"no budget":                     {set: edits{"spec.updateStrategy": "{maxUnavailable: 0}"}, want: "spec.updateStrategy.maxUnavailable: Invalid value: 0: must be 1 or more"},
			"a budget that is no number":    {set: edits{"spec.updateStrategy": "{maxUnavailable: some}"}, want: "spec.updateStrategy.maxUnavailable: Invalid value: \"some\": must be 1 or more"},
			"a budget beside reservation":   {set: edits{strategy: adaptive, subsets: "[]", "spec.updateStrategy": "{maxUnavailable: 1}"}, want: "spec.updateStrategy.maxUnavailable: Forbidden: can't be used with reserveUnschedulablePods", unstorable: true},
			"older, no template":            {older: true, set: edits{template: "{}"}, want: one},
		},
		updates: map[string]update{
			"another selector":           {new: edits{"spec.selector.matchLabels": "{app: api}"}, want: "spec.selector: Forbidden: is immutable"},
			"other nodes":                {new: edits{subsets: "[{name: a, replicas: 1, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [b]}]}}, {name: b}]"}, want: kept},
			"no nodes":                   {new: edits{subsets: "[{name: a, replicas: 1}, {name: b}]"}, want: kept},
			"nodes of a subset with all": {old: edits{subsets: "[{name: a}]"}, new: edits{subsets: "[{name: a, nodeSelectorTerm: {matchFields: [{key: metadata.name, operator: In, values: [b]}]}}]"}, want: kept},
			"an empty term":              {old: edits{subsets: "[{name: a}]"}, new: edits{subsets: "[{name: a, nodeSelectorTerm: {}}]"}},
			"a toleration":               {old: edits{subsets: "[{name: a}]"}, new: edits{subsets: "[{name: a, tolerations: [{key: a}]}]"}, want: kept},
			"another order":              {old: edits{subsets: "[{name: a, tolerations: [{key: a}]}, {name: b}]"}, new: edits{subsets: "[{name: b}, {name: a, tolerations: [{key: a}]}]"}},
			"another subset":             {old: edits{subsets: "[{name: a}]"}, new: edits{subsets: "[{name: b, tolerations: [{key: a}]}]"}},
			"another cluster":            {old: edits{subsets: elsewhere, registry: "{}"}, new: edits{subsets: "[{name: a, targetCluster: {namespace: default, name: other}}]", registry: "{}"}, want: kept},
			"from another cluster":       {old: edits{subsets: elsewhere, registry: "{}"}, new: edits{subsets: "[{name: a}]", registry: "{}"}, want: kept},
			"into another cluster":       {old: edits{subsets: "[{name: a}]"}, new: edits{subsets: elsewhere, registry: "{}"}, want: kept},
			"one more cluster":           {old: edits{subsets: elsewhere, registry: "{}"}, new: edits{subsets: "[{name: a, targetCluster: {namespace: default, name: m}}, {name: b, targetCluster: {name: other}}]", registry: "{}"}},
			"another first namespace":    {old: edits{registry: "{namespaces: [a, b]}"}, new: edits{registry: "{namespaces: [b, a]}"}, want: registry + ".namespaces: Forbidden: the first one is immutable"},
			"another namespace":          {old: edits{registry: "{namespaces: [a]}"}, new: edits{registry: "{namespaces: [a, b]}"}},
			"the default in words":       {old: edits{registry: "{}"}, new: edits{registry: "{namespaces: [default], clusterType: {apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ClusterProfile}}"}},
			"another type of clusters":   {old: edits{registry: "{}"}, new: edits{registry: "{clusterType: {apiVersion: v1, kind: Secret}}"}, want: registry + ".clusterType: Forbidden: is immutable"},
			"another kind":               {new: edits{template: of("cloneSetTemplate", "")}},
			"another policy": {
				old: edits{template: of("advancedStatefulSetTemplate", "")}, new: edits{template: of("advancedStatefulSetTemplate", "podManagementPolicy: Parallel, ")},
				want: "spec.template.advancedStatefulSetTemplate.spec.podManagementPolicy: Forbidden: is immutable",
			},
		},
	}
}
