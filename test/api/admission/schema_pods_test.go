package admission

func podSchema() map[string]schemaCase {
	budget := func(spec, want string) schemaCase {
		return schemaCase{kind: "PodUnavailableBudget", spec: "{selector: {matchLabels: {a: b}}, " + spec + "}", want: want}
	}
	target := func(target, want string) schemaCase {
		return schemaCase{kind: "PodUnavailableBudget", spec: "{targetRef: {" + target + "}, minAvailable: 1}", want: want}
	}
	marker := func(probes, want string) schemaCase {
		return schemaCase{kind: "PodProbeMarker", spec: "{selector: {matchLabels: {a: b}}, probes: [" + probes + "]}", want: want}
	}
	asks := func(probe, want string) schemaCase {
		return marker("{name: a, containerName: c, podConditionType: d, probe: {"+probe+"}}", want)
	}
	restart := func(spec, want string) schemaCase {
		return schemaCase{kind: "ContainerRecreateRequest", spec: "{podName: p, containers: [{name: a}], " + spec + "}", want: want}
	}
	containers := func(containers, want string) schemaCase {
		return schemaCase{kind: "ContainerRecreateRequest", spec: "{podName: p, containers: " + containers + "}", want: want}
	}
	older := restart("strategy: {failurePolicy: Wait}", `spec.strategy.failurePolicy: Unsupported value: "Wait"`)
	older.version = "v1alpha1"
	const ask = "probe: {exec: {command: [a]}}"
	spread := func(spec, want string) schemaCase { return schemaCase{kind: "WorkloadSpread", spec: spec, want: want} }
	return map[string]schemaCase{
		"spread over subsets":          spread("{targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, subsets: [{name: a, maxReplicas: 3}, {name: b, maxReplicas: 30%}]}", ""),
		"spread over none":             spread("{targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, subsets: []}", "spec.subsets"),
		"spread of nothing":            spread("{subsets: [{name: a}]}", "spec.targetRef: Required value"),
		"spread of no kind":            spread("{targetRef: {apiVersion: apps/v1, kind: '', name: web}, subsets: [{name: a}]}", "spec.targetRef.kind"),
		"spread over two of a name":    spread("{targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, subsets: [{name: a}, {name: a}]}", "Duplicate value"),
		"spread by an unknown way":     spread("{targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, subsets: [{name: a}], scheduleStrategy: {type: Other}}", "Unsupported value"),
		"spread later than ever":       spread("{targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, subsets: [{name: a}], scheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: -1}}}", "rescheduleCriticalSeconds"),
		"by a selector":                budget("maxUnavailable: 1", ""),
		"by a target":                  target("apiVersion: apps/v1, kind: Deployment, name: web", ""),
		"both ways":                    budget("targetRef: {apiVersion: v1, kind: A, name: b}, maxUnavailable: 1", "exactly one of selector and targetRef is needed"),
		"no way":                       {kind: "PodUnavailableBudget", spec: "{maxUnavailable: 1}", want: "exactly one of selector and targetRef is needed"},
		"all Pods":                     {kind: "PodUnavailableBudget", spec: "{selector: {}, maxUnavailable: 1}", want: "spec.selector: Invalid value: must not be empty"},
		"half a target":                target("apiVersion: apps/v1, kind: Deployment, name: ''", "spec.targetRef.name: Invalid value"),
		"a version that can't be read": target("apiVersion: a/b/c, kind: Deployment, name: web", "spec.targetRef.apiVersion: Invalid value: \"a/b/c\": must be a group and a version, such as apps/v1"),
		"two numbers":                  budget("maxUnavailable: 1, minAvailable: 1", "exactly one of maxUnavailable and minAvailable is needed"),
		"no number":                    budget("capToMaxUnavailable: true", "exactly one of maxUnavailable and minAvailable is needed"),
		"a negative number":            budget("maxUnavailable: -1", "spec.maxUnavailable: Invalid value: -1"),
		"more than all":                budget("maxUnavailable: 101%", "spec.maxUnavailable: Invalid value"),
		"an unknown operation":         budget("maxUnavailable: 1, protectOperations: [EVICT, REBOOT]", `spec.protectOperations[1]: Unsupported value: "REBOOT"`),
		"an operation of nothing":      budget("maxUnavailable: 1, protectOperations: ['']", "spec.protectOperations[0]: Unsupported value"),
		"no Pods":                      budget("maxUnavailable: 1, protectTotalReplicas: 0", "spec.protectTotalReplicas: Invalid value: 0"),
		"all Pods ignored":             budget("maxUnavailable: 1, ignoredPodSelector: {}", "spec.ignoredPodSelector: Invalid value: must not be empty"),
		"a good marker":                marker("{name: a, containerName: c, podConditionType: example.com/d, "+ask+"}", ""),
		"by every handler":             marker("{name: a, containerName: c, podConditionType: d, probe: {httpGet: {path: /, port: 1}}}, {name: b, containerName: c, podConditionType: e, probe: {tcpSocket: {port: web}}}", ""),
		"selects everything":           {kind: "PodProbeMarker", spec: "{selector: {}, probes: [{name: a, containerName: c, podConditionType: d, " + ask + "}]}", want: "spec.selector: Required value: name the labels"},
		"asks nothing":                 marker("", "spec.probes: Invalid value"),
		"no name":                      marker("{name: '', containerName: c, podConditionType: d, "+ask+"}", "spec.probes[0].name: Invalid value"),
		"a reserved name":              marker("{name: Ready, containerName: c, podConditionType: d, "+ask+"}", `spec.probes[0].name: Invalid value: "Ready": is the name of a condition that is written otherwise`),
		"a name with #":                marker("{name: 'a#b', containerName: c, podConditionType: d, "+ask+"}", "must not contain a #"),
		"a name twice":                 marker("{name: a, containerName: c, podConditionType: d, "+ask+"}, {name: a, containerName: c, podConditionType: e, "+ask+"}", "Duplicate value: give each probe a name of its own"),
		"a condition twice":            marker("{name: a, containerName: c, podConditionType: d, "+ask+"}, {name: b, containerName: c, podConditionType: d, "+ask+"}", "Duplicate value: give each probe a podConditionType of its own"),
		"no conditions":                marker("{name: a, containerName: c, markerPolicy: [{state: Failed, labels: {a: b}}], "+ask+"}, {name: b, containerName: c, markerPolicy: [{state: Succeeded, labels: {a: b}}], "+ask+"}", ""),
		"no container":                 marker("{name: a, containerName: '', podConditionType: d, "+ask+"}", "spec.probes[0].containerName: Invalid value"),
		"a reserved condition":         marker("{name: a, containerName: c, podConditionType: Ready, "+ask+"}", "is a condition that is written otherwise"),
		"a condition of evictions": marker("{name: a, containerName: c, podConditionType: DisruptionTarget, "+ask+"}",
			"is a condition that is written otherwise"),
		"a condition of the kubelet's": marker("{name: a, containerName: c, podConditionType: PodReadyToStartContainers, "+ask+"}",
			"is a condition that is written otherwise"),
		"a condition of resizes": marker("{name: a, containerName: c, podConditionType: PodResizePending, "+ask+"}",
			"is a condition that is written otherwise"),
		"a condition of SidecarSets": marker("{name: a, containerName: c, podConditionType: SidecarSetUpgradable, "+ask+"}",
			"is a condition that is written otherwise"),
		"a condition of the terminator": marker("{name: a, containerName: c, podConditionType: SidecarTerminated, "+ask+"}",
			"is a condition that is written otherwise"),
		"a condition that is no name": marker("{name: a, containerName: c, podConditionType: 'a b', "+ask+"}", "spec.probes[0].podConditionType: Invalid value: \"a b\": must be a name such as example.com/warm"),
		"shows nowhere":               marker("{name: a, containerName: c, "+ask+"}", "spec.probes[0].podConditionType: Required value: without it and without markerPolicy"),
		"an empty policy":             marker("{name: a, containerName: c, markerPolicy: [{state: Failed}], "+ask+"}", "spec.probes[0].markerPolicy[0]: Required value: give labels or annotations"),
		"a policy for Unknown":        marker("{name: a, containerName: c, markerPolicy: [{state: Unknown, labels: {a: b}}], "+ask+"}", `spec.probes[0].markerPolicy[0].state: Unsupported value: "Unknown"`),
		"two policies of a state":     marker("{name: a, containerName: c, markerPolicy: [{state: Failed, labels: {a: b}}, {state: Failed, labels: {a: c}}], "+ask+"}", "Duplicate value: give one policy for each state"),
		"two handlers":                asks("exec: {command: [a]}, tcpSocket: {port: 1}", "spec.probes[0].probe: Forbidden: give only one of exec, httpGet and tcpSocket"),
		"two other handlers":          asks("httpGet: {path: /, port: 1}, tcpSocket: {port: 1}", "spec.probes[0].probe: Forbidden: give only one of"),
		"no handler":                  asks("periodSeconds: 1", "spec.probes[0].probe: Required value: give exec, httpGet or tcpSocket"),
		"gRPC":                        asks("grpc: {port: 1}", "spec.probes[0].probe.grpc: Forbidden: is not supported: use exec, httpGet or tcpSocket"),
		"no command":                  asks("exec: {}", "spec.probes[0].probe.exec.command: Required value: give the command to run"),
		"no path":                     asks("httpGet: {port: 1}", "spec.probes[0].probe.httpGet.path: Required value: give the path to get"),
		"an unknown scheme":           asks("httpGet: {path: /, port: 1, scheme: FTP}", "spec.probes[0].probe.httpGet.scheme: Invalid value"),
		"another host":                asks("tcpSocket: {port: 1, host: h}", "spec.probes[0].probe.tcpSocket.host: Forbidden: the host is always the Pod"),
		"another host of HTTP":        asks("httpGet: {path: /, port: 1, host: h}", "spec.probes[0].probe.httpGet.host: Forbidden: the host is always the Pod"),
		"a negative period":           asks("exec: {command: [a]}, periodSeconds: -1", "periodSeconds, successThreshold and failureThreshold must not be negative"),
		"a good request":              restart("activeDeadlineSeconds: 60", ""),
		"a request of too many": {
			kind: "ContainerRecreateRequest", spec: "{podName: p, containers: " + manyOf(257, "{name: a%d}") + "}",
			want: "spec.containers: Too many: 257: must have at most 256 items",
		},
		"percent with a zero in front":  budget("maxUnavailable: 050%", "spec.maxUnavailable: Invalid value"),
		"percent with a fraction":       budget("maxUnavailable: 12.5%", "spec.maxUnavailable: Invalid value"),
		"percent with zeros":            budget("maxUnavailable: 100.0%", "spec.maxUnavailable: Invalid value"),
		"a request of another deadline": restart("activeDeadlineSeconds: -1", "spec.activeDeadlineSeconds: Invalid value: -1"),
		"a request of a short deadline": restart("activeDeadlineSeconds: 2", "activeDeadlineSeconds can not be less than 3s"),
		"a request for no Pod": {
			kind: "ContainerRecreateRequest", spec: "{podName: '', containers: [{name: a}]}", want: "spec.podName: Required value: podName can not be empty",
		},
		"a request for nothing":      containers("[]", "spec.containers: Required value: containers can not be empty"),
		"a request for no name":      containers("[{name: ''}]", "spec.containers[0].name: Required value: name the container"),
		"no time to start":           restart("strategy: {minStartedSeconds: -1}", "spec.strategy.minStartedSeconds: Invalid value: -1: must not be negative"),
		"kept for less than no time": restart("ttlSecondsAfterFinished: -1", "spec.ttlSecondsAfterFinished: Invalid value: -1"),
		"an unknown failure policy":  restart("strategy: {failurePolicy: Wait}", `spec.strategy.failurePolicy: Unsupported value: "Wait"`),
		"an unknown policy, older":   older,
		"no grace":                   restart("strategy: {terminationGracePeriodSeconds: -1}", "spec.strategy.terminationGracePeriodSeconds: Invalid value: -1"),
		"what a daemon is asked":     {kind: "NodePodProbe", spec: "{podProbes: [{name: a, namespace: b, uid: c, probes: [{name: a#b, containerName: c, " + ask + "}]}]}"},
	}
}

func podRatchets() []ratchetCase {
	return []ratchetCase{
		{
			schemaCase: schemaCase{
				kind: "PodUnavailableBudget", want: "spec.protectTotalReplicas",
				spec: "{targetRef: {apiVersion: a/b/c, kind: A, name: b}, maxUnavailable: 1, protectTotalReplicas: 0, protectOperations: [REBOOT], ignoredPodSelector: {}}",
			},
			change: "spec: {maxUnavailable: 2}", worse: "spec: {maxUnavailable: -1}",
		},
		{
			schemaCase: schemaCase{
				kind: "PodProbeMarker", want: "spec.probes[0].markerPolicy[0].state",
				spec: "{selector: {}, probes: [{name: Ready, containerName: c, podConditionType: 'a b', markerPolicy: [{state: Unknown}], probe: {grpc: {port: 1}}}]}",
			},
			change: "metadata: {labels: {a: b}}",
		},
		{
			schemaCase: schemaCase{kind: "ContainerRecreateRequest", spec: "{podName: p, containers: [{name: a}], strategy: {failurePolicy: Wait}}", want: "spec.strategy.failurePolicy"},
			change:     "spec: {ttlSecondsAfterFinished: 5}", worse: "spec: {ttlSecondsAfterFinished: -5}",
		},
	}
}
