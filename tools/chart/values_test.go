package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"
)

// idle are values that change nothing, on purpose.
func idle() map[string]bool {
	return map[string]bool{"manager.resyncPeriod": true, "rollout.fullname": true}
}

// samples are other values than the standard ones, where the type alone does not say one, with what they need besides.
func samples() map[string]string {
	return map[string]string{
		"installation.namespace":             "installation.namespace=elsewhere",
		"resourceDistribution.moreKinds":     "resourceDistribution.enabled=true,resourceDistribution.moreKinds=true",
		"multicluster.namespaces":            "multicluster.enabled=true,multicluster.namespaces={fleet}",
		"metrics.serviceMonitor.interval":    "metrics.serviceMonitor.enabled=true,metrics.serviceMonitor.interval=7s",
		"metrics.serviceMonitor.labels":      "metrics.serviceMonitor.enabled=true,metrics.serviceMonitor.labels.release=sample",
		"metrics.prometheusRule.labels":      "metrics.prometheusRule.enabled=true,metrics.prometheusRule.labels.release=sample",
		"grafana.dashboards.labels":          "grafana.dashboards.enabled=true,grafana.dashboards.labels.sample=yes",
		"metrics.state.limit":                "metrics.state.enabled=true,metrics.state.limit=7",
		"traces.endpoint":                    "traces.endpoint=http://collector:4318",
		"traces.percent":                     "traces.endpoint=http://collector:4318,traces.percent=7",
		"networkPolicy.apiServers":           "networkPolicy.apiServers={192.0.2.10/32}",
		"daemon.socketLocation":              "daemon.socketLocation=/run/k3s/containerd",
		"daemon.pprofAddr":                   "daemon.enablePprof=true,daemon.pprofAddr=localhost:7000",
		"daemon.credentialProvider.hostPath": "daemon.credentialProvider.enable=true,daemon.credentialProvider.hostPath=/opt/sample",
		"daemon.credentialProvider.configmap": "daemon.credentialProvider.enable=true," +
			"daemon.credentialProvider.configmap=sample",
		"daemon.maxUnavailable":       "daemon.maxUnavailable=7%",
		"manager.resources":           "manager.resources.limits.memory=2Gi",
		"resources":                   "resources.limits.memory=2Gi",
		"manager.image.digest":        "manager.image.digest=sha256:" + strings.Repeat("7", 64),
		"daemon.image.digest":         "daemon.image.digest=sha256:" + strings.Repeat("7", 64),
		"image.digest":                "image.digest=sha256:" + strings.Repeat("7", 64),
		"daemon.tolerations":          "daemon.tolerations[0].key=sample",
		"imagePullSecrets":            "imagePullSecrets[0].name=sample",
		"manager.extraEnvs":           "manager.extraEnvs[0].name=SAMPLE",
		"daemon.extraEnvs":            "daemon.extraEnvs[0].name=SAMPLE",
		"rollout.extraEnvs":           "rollout.extraEnvs[0].name=SAMPLE",
		"installation.roleListGroups": "installation.roleListGroups={example.com}",
	}
}

// sample returns what to set for a value to be another one.
func sample(v value) string {
	if set := samples()[v.path]; set != "" {
		return set
	}
	switch fmt.Sprint(v.schema["type"]) {
	case "boolean":
		return v.path + "=" + map[string]string{"true": "false", "false": "true"}[v.standard]
	case "integer", "[integer string]":
		return v.path + "=7"
	case "object":
		return v.path + ".sample=yes"
	case "array":
		if v.schema["items"].(map[string]any)["type"] == "string" {
			return v.path + "={--sample}"
		}
		return v.path + "[0].key=sample"
	}
	if all, found := v.schema["enum"].([]string); found {
		return v.path + "=" + all[0]
	}
	return v.path + "=sample"
}

// TestEveryValueDoesSomething: a value that changes nothing is one that users set in vain.
func TestEveryValueDoesSomething(t *testing.T) {
	for _, c := range made(t) {
		before := allOf(t, c.name, "")
		for _, v := range c.values {
			set := sample(v)
			base := before
			if others, _, found := cutLast(set, ","); found { // what the value needs is set in both
				base = allOf(t, c.name, others)
			}
			if got := allOf(t, c.name, set); (got == base) != idle()[v.path] {
				t.Errorf("chart %s: %s changes something: %t", c.name, set, got != base)
			}
		}
	}
}

func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// allOf returns all that a chart makes, hooks too, as text.
func allOf(t *testing.T, chart, values string) string {
	t.Helper()
	r, err := install(t, chart, "default", values)
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	text := r.Manifest
	for _, hook := range r.Hooks {
		text += hook.Manifest
	}
	return text
}

// TestAValueThatIsMisspeltIsRefused, at each level of each value, and so is one of another type.
func TestAValueThatIsMisspeltIsRefused(t *testing.T) {
	for _, c := range made(t) {
		for _, v := range c.values {
			keys := strings.Split(v.path, ".")
			for i := range keys {
				misspelt := append([]string{}, keys[:i+1]...)
				misspelt[i] += "x"
				set := strings.Join(append(misspelt, keys[i+1:]...), ".") + "=1"
				if _, err := install(t, c.name, "default", set); err == nil || !strings.Contains(err.Error(), "not allowed") {
					t.Errorf("chart %s takes %s: %v", c.name, set, err)
				}
			}
			wrong := v.path + "=sample"
			switch fmt.Sprint(v.schema["type"]) {
			case "string":
				wrong = v.path + "={sample}"
			case "<nil>":
				wrong = v.path + "=no such thing"
			}
			if _, err := install(t, c.name, "default", wrong); err == nil && v.path != "manager.resyncPeriod" {
				t.Errorf("chart %s takes %s", c.name, wrong)
			}
		}
	}
}

func TestValuesThatNoClusterTakesAreRefused(t *testing.T) {
	for set, says := range map[string]string{
		"manager.replicas=0":                     "minimum",
		"manager.webhook.port=70000":             "maximum",
		"installation.namespace=Not_A_Name":      "pattern",
		"networkPolicy.apiServers={10.0.0.1}":    "pattern",
		"manager.resources.limits.memory=lots":   "write a number with Ki, Mi, Gi, k, M or G",
		"manager.image.digest=latest":            "pattern",
		"daemon.socketLocation=run/containerd":   "pattern",
		"daemon.maxUnavailable=some":             "pattern",
		"webhookConfiguration.timeoutSeconds=31": "maximum",
	} {
		if _, err := install(t, "kruise", "default", set); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", set, err, says)
		}
	}
}

// TestValuesOfOlderCharts: a file of values that clusters have been installed with carries over.
func TestValuesOfOlderCharts(t *testing.T) {
	for chart, wants := range map[string][]string{
		"kruise": {
			"--feature-gates=ResourcesDeletionProtection=false,ImagePullJobGate=true", "--v=4",
			"image: registry.example.com/kruise-manager:v9",
			"--socket-file=containerd/containerd.sock", "path: /var/run", "iam.example.com/role: kruise", "imagePullSecrets:",
			"--metrics-addr=127.0.0.1:8081",
			"timeoutSeconds: 30", "hostNetwork: true", "GOMEMLIMIT\n          value: 450MiB", "admissions.enforcer/disabled: \"true\"",
			"containerPort: 9443",
		},
		"kruise-rollout": {"--feature-gates=AdvancedDeployment=true", "--v=4", "image: registry.example.com/kruise-rollout:v9", "replicas: 3",
			"key: team"},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", chart+"-values.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var set map[string]any
		if err := yaml.UnmarshalStrict(text, &set); err != nil {
			t.Fatal(err)
		}
		r, err := installWith(t, chart, "default", set)
		if err != nil {
			t.Fatalf("chart %s: %v", chart, err)
		}
		for _, want := range wants {
			if !strings.Contains(r.Manifest, want) {
				t.Errorf("chart %s: nothing says %q", chart, want)
			}
		}
	}
}

// TestAnArchiveIsAChart, and the same one each time.
func TestAnArchiveIsAChart(t *testing.T) {
	for _, c := range made(t) {
		files, err := c.files(versionOf(t))
		if err != nil {
			t.Fatal(err)
		}
		one, err := archive(c.name, files)
		if err != nil {
			t.Fatal(err)
		}
		other, err := archive(c.name, files)
		if err != nil || !bytes.Equal(one, other) {
			t.Errorf("chart %s: two archives differ: %v", c.name, err)
		}
		loaded, err := loader.LoadArchive(bytes.NewReader(one))
		if err != nil {
			t.Fatal(err)
		}
		if loaded.Name() != c.name || "v"+loaded.Metadata.Version != string(versionOf(t)) || loaded.Schema == nil || len(loaded.Templates) < 8 {
			t.Errorf("the archive holds %s %s with %d templates", loaded.Name(), loaded.Metadata.Version, len(loaded.Templates))
		}
	}
}

// TestNotesNameTheNextSteps, and no notes name a namespace that is not there.
func TestNotesNameTheNextSteps(t *testing.T) {
	for chart, want := range map[string]string{
		"kruise":         "kubectl -n kruise-system rollout status deployment/kruise-controller-manager",
		"kruise-rollout": "kubectl -n kruise-rollout rollout status deployment/kruise-rollout-manager",
	} {
		r, err := install(t, chart, "default")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.Info.Notes, want) || strings.Contains(r.Info.Notes, "kubectl label") {
			t.Errorf("chart %s says\n%s", chart, r.Info.Notes)
		}
	}
	r, err := install(t, "kruise", "kruise-system")
	if err != nil || !strings.Contains(r.Info.Notes, "kubectl label namespace kruise-system") {
		t.Errorf("%v: a namespace without labels is not spoken of", err)
	}
}
