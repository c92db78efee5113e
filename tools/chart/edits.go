package main

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Where things are in a Deployment or a DaemonSet.
const (
	pod       = "spec/template/spec"
	container = pod + "/containers/0"
)

// clone copies a node, for each page edits its own.
func clone(node *yaml.Node) *yaml.Node {
	next := *node
	next.Content = nil
	for _, below := range node.Content {
		next.Content = append(next.Content, clone(below))
	}
	return &next
}

// with is an entry that is there only if a value is.
func with(value, entry string) string {
	return fmt.Sprintf("{{- with %s }}\n%s:\n  {{- toYaml . | nindent @2 }}\n{{- end }}", value, entry)
}

// whole is an entry whose value is one of the chart.
func whole(value, entry string) string {
	return fmt.Sprintf("%s:\n  {{- toYaml %s | nindent @2 }}", entry, value)
}

// orElse keeps the entry of the manifests unless a value is given.
func (t *template) orElse(o object, path, value, entry string) {
	t.wrap(o, path, fmt.Sprintf("{{- with %s }}\n%s:\n  {{- toYaml . | nindent @2 }}\n{{- else }}", value, entry), "{{- end }}")
}

// named returns the path of the item of a sequence that has a name.
func (t *template) named(o object, path, name string) string {
	node, i := t.find(o, path)
	if node == nil {
		return path
	}
	for n, item := range node.Content[i].Content {
		if at := indexOf(item, "name"); at >= 0 && item.Content[at].Value == name {
			return path + "/" + strconv.Itoa(n)
		}
	}
	t.fail(o, "nothing at %s has the name %s", path, name)
	return path + "/0"
}

// keptCRD makes a CRD one that survives an uninstall, and lets another controller fill in the CA if the chart has a value for that.
func keptCRD(more string) func(*template, object) {
	return func(t *template, o object) {
		t.add(o, "metadata/annotations", "{{- if .Values.crds.keep }}\nhelm.sh/resource-policy: keep\n{{- end }}"+more)
	}
}

// keptNamespace makes a namespace one that survives an uninstall: it has what others have put there.
func keptNamespace(t *template, o object) {
	if o.kind == "Namespace" {
		t.add(o, "metadata", "annotations:\n  helm.sh/resource-policy: keep")
	}
}

// account gives ServiceAccounts the annotations of the chart.
func account(t *template, o object) {
	if o.kind == "ServiceAccount" {
		t.add(o, "metadata", with(".Values.serviceAccount.annotations", "annotations"))
	}
}

// ofPods are the edits of whatever runs Pods: its image, and where it runs. Values are below prefix, that of the image is named.
func ofPods(t *template, o object, prefix, image string) {
	t.set(o, container+"/image", `{{ include "kruise.image" `+image+` }}`)
	t.set(o, container+"/imagePullPolicy", "{{ "+image+".pullPolicy }}")
	t.replace(o, container+"/resources", whole(prefix+".resources", "resources"))
	t.add(o, pod, with(".Values.imagePullSecrets", "imagePullSecrets"))
	t.add(o, pod, with(prefix+".nodeSelector", "nodeSelector"))
}

// ofManagers are the edits of a Deployment of managers.
func ofManagers(t *template, o object, prefix, image string) {
	t.replace(o, t.named(o, container+"/env", "GOMEMLIMIT"),
		`{{- with include "kruise.goMemLimit" `+prefix+".resources }}\n- name: GOMEMLIMIT\n  value: {{ . }}\n{{- end }}")
	ofPods(t, o, prefix, image)
	t.orElse(o, pod+"/topologySpreadConstraints", prefix+".topologySpreadConstraints", "topologySpreadConstraints")
	t.add(o, pod, with(prefix+".tolerations", "tolerations"))
	t.add(o, pod, "{{- if "+prefix+".hostNetwork }}\nhostNetwork: true\ndnsPolicy: ClusterFirstWithHostNet\n{{- end }}")
}

// ofNetwork are the edits of the NetworkPolicy of managers.
func ofNetwork(t *template, o object) {
	t.add(o, "spec/ingress/0", "{{- with .Values.networkPolicy.apiServers }}\nfrom:\n"+
		"{{- range . }}\n- ipBlock:\n    cidr: {{ . | quote }}\n{{- end }}\n{{- end }}")
}

// opensMetrics lets Prometheus in where a ServiceMonitor sends it.
func opensMetrics(t *template, o object) {
	t.add(o, "spec/ingress",
		"{{- if .Values.metrics.serviceMonitor.enabled }}\n- ports:\n  - port: metrics\n    protocol: TCP\n{{- end }}")
}

// aroundManagers are the conditions of what stands beside a Deployment of managers.
func aroundManagers(prefix string) func(object) string {
	return func(o object) string {
		switch o.kind {
		case "PodDisruptionBudget":
			return "if " + prefix + ".podDisruptionBudget.enabled"
		case "NetworkPolicy":
			return "if .Values.networkPolicy.enabled"
		default:
			return ""
		}
	}
}
