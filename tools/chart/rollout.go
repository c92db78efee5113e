package main

import (
	"path/filepath"
	"slices"
	"strconv"
)

// rollout returns the chart of the manager of Rollouts.
func rollout(root string, v version) (chart, error) {
	all, err := build(filepath.Join(root, "config", "rollouts"))
	if err != nil {
		return chart{}, err
	}
	c := chart{
		name: "kruise-rollout", title: "Releases of workloads in steps of Pods and traffic, on the rollouts.kruise.io API",
		namespace: "kruise-rollout", values: rolloutValues(string(v)),
	}
	kinds := func(kinds ...string) []object {
		return slices.DeleteFunc(slices.Clone(all), func(o object) bool { return !slices.Contains(kinds, o.kind) })
	}
	const from = "config/rollouts"
	c.pages = []page{
		{file: "namespace.yaml", from: from, objects: kinds("Namespace"),
			when: "and .Values.installation.createNamespace (ne .Release.Namespace .Values.installation.namespace)"},
		{file: "rbac.yaml", from: from, objects: kinds("ServiceAccount", "Role", "RoleBinding", "ClusterRole",
			"ClusterRoleBinding"), edit: rolloutRights},
		{file: "policy.yaml", from: from, objects: kinds("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")},
		{file: "flowcontrol.yaml", from: from, objects: kinds("PriorityLevelConfiguration", "FlowSchema"),
			when: ".Values.flowControl.enabled"},
		{file: "manager.yaml", from: from, objects: kinds("Deployment", "PodDisruptionBudget", "NetworkPolicy"),
			edit: rolloutManager, around: aroundManagers(".Values")},
		{file: "webhook.yaml", from: from, objects: kinds("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "Service"),
			edit: rolloutWebhooks},
	}
	for _, o := range kinds("CustomResourceDefinition") {
		c.pages = append(c.pages, page{file: "crds/" + o.name + ".yaml", from: from, objects: []object{o}, edit: keptCRD(""),
			when: ".Values.crds.managed"})
	}
	return c, nil
}

func rolloutManager(t *template, o object) {
	switch o.kind {
	case "Deployment":
		t.set(o, "spec/replicas", "{{ .Values.replicaCount }}")
		ofManagers(t, o, ".Values", ".Values.image")
		t.replace(o, container+"/args", "args:\n{{- include \"kruise.rollout.args\" . | nindent @0 }}")
		t.set(o, t.named(o, container+"/ports", "webhook")+"/containerPort", "{{ .Values.rollout.webhook.port }}")
		t.set(o, t.named(o, container+"/ports", "health")+"/containerPort", "{{ .Values.rollout.healthBindPort }}")
		t.add(o, container+"/ports", "{{- if .Values.metrics.serviceMonitor.enabled }}\n"+
			"- name: metrics\n  containerPort: {{ include \"kruise.rollout.metricsPort\" . }}\n{{- end }}")
		t.add(o, container+"/env", portVariable(".Values.rollout.webhook.port"))
		t.add(o, container+"/env", "{{- with .Values.rollout.extraEnvs }}\n{{- toYaml . | nindent @0 }}\n{{- end }}")
		t.add(o, pod, with(".Values.affinity", "affinity"))
		t.add(o, pod, "{{- with .Values.priorityClassName }}\npriorityClassName: {{ . }}\n{{- end }}")
	case "PodDisruptionBudget":
		t.set(o, "spec/maxUnavailable", "{{ .Values.podDisruptionBudget.maxUnavailable }}")
	case "NetworkPolicy":
		ofNetwork(t, o)
		opensMetrics(t, o)
	}
}

// rolloutRights lets users give the manager rights for further kinds of workloads.
func rolloutRights(t *template, o object) {
	account(t, o)
	if o.kind == "ClusterRole" && o.name == "kruise-rollout-further-workloads" {
		t.replace(o, "rules", whole(".Values.rollout.workloadRules", "rules"))
	}
}

// rolloutWebhooks lets users narrow which workloads webhooks see.
func rolloutWebhooks(t *template, o object) {
	if o.kind != "MutatingWebhookConfiguration" {
		return
	}
	webhooks, i := t.find(o, "webhooks")
	if webhooks == nil {
		return
	}
	for n := range webhooks.Content[i].Content {
		t.add(o, "webhooks/"+strconv.Itoa(n)+"/objectSelector/matchExpressions",
			"{{- with .Values.rollout.webhook.objectSelector }}\n{{- toYaml . | nindent @0 }}\n{{- end }}")
	}
}
