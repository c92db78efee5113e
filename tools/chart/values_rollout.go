package main

import "slices"

// rolloutValues are the values of the chart of Rollouts.
func rolloutValues(version string) []value {
	fullname := choice("rollout.fullname", "kruise-rollout", []string{"kruise-rollout"},
		"Taken for value files of older charts: managers find their objects by name, and none of them can have another one.")
	return slices.Concat(commonValues("kruise-rollout"), []value{
		number("replicaCount", 2, 1, 20, "Number of managers."),
	}, imageValues("image", "kruise-rollout", version), []value{
		fullname,
		text("rollout.featureGates", "", "Feature gates, as Name=true or Name=false, joined by commas."),
		port("rollout.healthBindPort", 8081, "Port of /healthz and /readyz."),
		text("rollout.metricsBindAddr", ":8080",
			"Address of the metrics, by HTTPS and for who may get the path /metrics unless it is of the loopback."),
		port("rollout.webhook.port", 9876, "Port of the webhooks."),
		list("rollout.webhook.objectSelector", "[]", "object", "Further matchExpressions of the workloads whose updates the webhooks see."),
		level("rollout.log.level"),
		choice("rollout.loggingFormat", "json", []string{"", "json", "text"}, "Format of the log; empty is text."),
		list("rollout.workloadRules", "[]", "object",
			"Rules of a ClusterRole for workloads that are only like a StatefulSet, with --filter-workload-type=false."),
		list("rollout.extraArgs", "[]", "string", "Further flags, such as --rollout-workers=5."),
		list("rollout.extraEnvs", "[]", "object", "Further environment variables."),
		mapping("affinity", "{}", "Affinity of the managers."),
		text("priorityClassName", "", "Priority of the managers."),
	}, metricsValues(), traceValues(), podValues(""))
}
