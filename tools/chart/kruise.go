package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// external are the annotations by which another controller fills in the CA of webhooks and CRDs.
const external = `
{{- range $name, $value := .Values.externalCerts.annotations }}
{{ $name }}: {{ $value | quote }}
{{- end }}`

// distributed are the objects of the manifests that change where ResourceDistributions are served.
const distributedPolicy, managerName = "kruise-manager-configmaps", "kruise-controller-manager"

// kruise returns the chart of manager and daemon.
func kruise(root string, v version) (chart, error) {
	config := filepath.Join(root, "config")
	built := map[string][]object{}
	for _, folder := range []string{"crd", "rbac", "protection", "flowcontrol", "manager", "daemon", "webhook", "multicluster", "default"} {
		var err error
		if built[folder], err = build(filepath.Join(config, folder)); err != nil {
			return chart{}, err
		}
	}
	c := chart{
		name: "kruise", title: "Workloads and Pod operations for Kubernetes, on the apps.kruise.io API", namespace: "kruise-system",
		values: kruiseValues(string(v)),
	}
	c.pages = []page{
		{file: "namespace.yaml", from: "config/default", objects: only(built["default"], "Namespace", c.namespace),
			when: "and .Values.installation.createNamespace (ne .Release.Namespace .Values.installation.namespace)"},
		{file: "rbac.yaml", from: "config/rbac", objects: built["rbac"], edit: kruiseRights, around: func(o object) string {
			if o.kind == "ValidatingAdmissionPolicy" && o.name == distributedPolicy {
				return "if not .Values.resourceDistribution.enabled"
			}
			return ""
		}},
		{file: "protection.yaml", from: "config/protection", objects: built["protection"], when: ".Values.protection.enabled"},
		{file: "flowcontrol.yaml", from: "config/flowcontrol", objects: built["flowcontrol"], when: ".Values.flowControl.enabled",
			around: func(o object) string {
				if o.name == "kruise-daemon" {
					return "if .Values.daemon.enabled"
				}
				return ""
			}},
		{file: "manager.yaml", from: "config/manager", objects: built["manager"], edit: kruiseManager,
			around: aroundManagers(".Values.manager")},
		{file: "daemon.yaml", from: "config/daemon", objects: built["daemon"], edit: kruiseDaemon, when: ".Values.daemon.enabled"},
		{file: "webhook.yaml", from: "config/webhook", objects: built["webhook"], edit: kruiseWebhooks},
		{file: "multicluster.yaml", from: "config/multicluster", objects: built["multicluster"], edit: ofHub,
			when: ".Values.multicluster.enabled", around: func(o object) string {
				if o.namespace == "default" {
					return "range .Values.multicluster.namespaces"
				}
				return ""
			}},
	}
	for _, o := range built["crd"] {
		c.pages = append(c.pages, page{file: "crds/" + o.name + ".yaml", from: "config/crd", objects: []object{o},
			edit: keptCRD(external), when: ".Values.crds.managed"})
	}
	if err := c.addMonitoring(filepath.Join(root, "integrations")); err != nil {
		return chart{}, err
	}
	return c, c.addDistribution(config, built["default"])
}

// addMonitoring adds the alerts and the dashboards, as files that templates put into objects.
func (c *chart) addMonitoring(folder string) error {
	dashboards, err := filepath.Glob(filepath.Join(folder, "grafana", "*.json"))
	if err != nil {
		return err
	}
	c.extra = map[string]string{}
	for _, path := range append(dashboards, filepath.Join(folder, "prometheus", "rules.yaml")) {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		c.extra["files/"+filepath.Base(path)] = string(text)
	}
	return nil
}

// addDistribution adds what ResourceDistributions take.
func (c *chart) addDistribution(config string, standard []object) error {
	components := []string{filepath.Join(config, "resourcedistribution"), filepath.Join(config, "resourcedistribution", "kinds")}
	before := standard
	for i, p := range []page{
		{file: "resourcedistribution.yaml", from: "config/resourcedistribution", when: ".Values.resourceDistribution.enabled"},
		{file: "resourcedistribution-kinds.yaml", from: "config/resourcedistribution/kinds",
			when: "and .Values.resourceDistribution.enabled .Values.resourceDistribution.moreKinds"},
	} {
		all, err := buildWith(filepath.Join(config, "default"), components[:i+1], nil)
		if err != nil {
			return err
		}
		if p.objects, err = changed(before, all); err != nil {
			return err
		}
		// The flags of the manager follow from the values.
		p.objects = slices.DeleteFunc(p.objects, func(o object) bool { return o.name == managerName })
		for _, o := range p.objects {
			if slices.ContainsFunc(standard, o.same) && o.name != distributedPolicy {
				return fmt.Errorf("the component %s changes %s, for which the chart has no condition", p.from, o)
			}
		}
		c.pages = append(c.pages, p)
		before = all
	}
	return nil
}

// changed returns the objects that are new, or others than before.
func changed(before, after []object) ([]object, error) {
	var all []object
	for _, o := range after {
		i := slices.IndexFunc(before, o.same)
		if i < 0 {
			all = append(all, o)
			continue
		}
		was, err := encode(before[i].node)
		if err != nil {
			return nil, err
		}
		is, err := encode(o.node)
		if err != nil {
			return nil, err
		}
		if was != is {
			all = append(all, o)
		}
	}
	return all, nil
}

func only(all []object, kind, name string) []object {
	return slices.DeleteFunc(slices.Clone(all), func(o object) bool { return o.kind != kind || o.name != name })
}

func kruiseRights(t *template, o object) {
	account(t, o)
	keptNamespace(t, o)
	if o.kind != "ClusterRole" || o.name != "kruise-manager-role" {
		return
	}
	rules, i := t.find(o, "rules")
	if rules == nil {
		return
	}
	for n, rule := range rules.Content[i].Content {
		if at := indexOf(rule, "resources"); len(rule.Content[at].Content) == 1 && rule.Content[at].Content[0].Value == "*/scale" {
			t.replace(o, "rules/"+strconv.Itoa(n)+"/apiGroups", whole(".Values.installation.roleListGroups", "apiGroups"))
			return
		}
	}
	t.fail(o, "no rule is for */scale")
}

func kruiseManager(t *template, o object) {
	const values = ".Values.manager"
	switch o.kind {
	case "Deployment":
		t.set(o, "spec/replicas", "{{ .Values.manager.replicas }}")
		ofManagers(t, o, values, values+".image")
		t.set(o, pod+"/priorityClassName", "{{ .Values.manager.priorityClassName | quote }}")
		t.replace(o, container+"/args", "args:\n{{- include \"kruise.manager.args\" . | nindent @0 }}")
		t.set(o, t.named(o, container+"/ports", "webhook")+"/containerPort", "{{ .Values.manager.webhook.port }}")
		t.set(o, t.named(o, container+"/ports", "health")+"/containerPort", "{{ .Values.manager.healthProbe.port }}")
		t.add(o, container+"/ports", "{{- if .Values.metrics.serviceMonitor.enabled }}\n"+
			"- name: metrics\n  containerPort: {{ .Values.manager.metrics.port }}\n{{- end }}")
		t.add(o, container+"/env", portVariable(values+".webhook.port"))
		t.add(o, container+"/env", "{{- with .Values.manager.extraEnvs }}\n{{- toYaml . | nindent @0 }}\n{{- end }}")
		t.add(o, pod, "{{- with .Values.manager.nodeAffinity }}\naffinity:\n  nodeAffinity:\n    {{- toYaml . | nindent @4 }}\n{{- end }}")
	case "PodDisruptionBudget":
		t.set(o, "spec/maxUnavailable", "{{ .Values.manager.podDisruptionBudget.maxUnavailable }}")
	case "NetworkPolicy":
		ofNetwork(t, o)
		opensMetrics(t, o)
	}
}

// portVariable tells the manager of another port for its webhooks.
func portVariable(value string) string {
	return "{{- if ne (int " + value + ") 9876 }}\n- name: WEBHOOK_PORT\n  value: {{ " + value + " | quote }}\n{{- end }}"
}

func kruiseDaemon(t *template, o object) {
	account(t, o)
	if o.kind != "DaemonSet" {
		return
	}
	const values = ".Values.daemon"
	ofPods(t, o, values, values+".image")
	t.set(o, "spec/updateStrategy/rollingUpdate/maxUnavailable", "{{ .Values.daemon.maxUnavailable }}")
	t.set(o, pod+"/priorityClassName", "{{ .Values.daemon.priorityClassName | quote }}")
	t.replace(o, container+"/args", "args:\n{{- include \"kruise.daemon.args\" . | nindent @0 }}")
	t.set(o, container+"/ports/0/containerPort", "{{ .Values.daemon.port }}")
	t.add(o, container+"/env", "{{- with .Values.daemon.extraEnvs }}\n{{- toYaml . | nindent @0 }}\n{{- end }}")
	t.orElse(o, pod+"/affinity", values+".affinity", "affinity")
	t.replace(o, pod+"/tolerations", with(values+".tolerations", "tolerations"))
	for _, name := range []string{"volumeMounts", "volumes"} {
		at := map[string]string{"volumeMounts": container, "volumes": pod}[name] + "/" + name
		// Those of the manifests unless a folder is given, and those of the programs that give credentials.
		node, i := t.find(o, at)
		if node == nil {
			return
		}
		last := strconv.Itoa(len(node.Content[i].Content) - 1)
		t.wrap(o, at+"/"+last, "", "{{- end }}\n{{- include \"kruise.daemon."+name+"\" . | nindent @0 }}")
		t.wrap(o, at+"/0", "{{- if not .Values.daemon.socketLocation }}", "")
	}
}

func kruiseWebhooks(t *template, o object) {
	if !strings.HasSuffix(o.kind, "WebhookConfiguration") {
		return
	}
	t.add(o, "metadata", "{{- if or .Values.externalCerts.annotations .Values.webhookConfiguration.aksIntegration }}\nannotations:"+
		"\n  {{- with .Values.externalCerts.annotations }}\n  {{- toYaml . | nindent @2 }}\n  {{- end }}"+
		"\n  {{- if .Values.webhookConfiguration.aksIntegration }}\n  admissions.enforcer/disabled: \"true\"\n  {{- end }}\n{{- end }}")
	webhooks, i := t.find(o, "webhooks")
	if webhooks == nil {
		return
	}
	for n, webhook := range webhooks.Content[i].Content {
		at := indexOf(webhook, "timeoutSeconds")
		if at < 0 {
			t.fail(o, "webhook %d has no timeoutSeconds", n)
			return
		}
		t.set(o, "webhooks/"+strconv.Itoa(n)+"/timeoutSeconds",
			"{{ .Values.webhookConfiguration.timeoutSeconds | default "+webhook.Content[at].Value+" }}")
	}
}

// ofHub are the edits of what is there once for each namespace of cluster objects.
func ofHub(t *template, o object) {
	if o.namespace == "default" {
		t.set(o, "metadata/namespace", "{{ . }}")
	}
}
