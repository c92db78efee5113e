package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestMonitoringIsWhatIsShipped: with their values the charts make the alerts, the dashboards, and what has the managers scraped.
func TestMonitoringIsWhatIsShipped(t *testing.T) {
	const scraped = "metrics.serviceMonitor.enabled=true"
	got := rendered(t, "kruise", scraped+",metrics.state.enabled=true,metrics.prometheusRule.enabled=true,grafana.dashboards.enabled=true")
	spec, _ := got["PrometheusRule kruise-system kruise"].(map[string]any)["spec"].(map[string]any)
	groups, _ := spec["groups"].([]any)
	if len(groups) != 5 || !strings.Contains(fmt.Sprint(groups), "{{ $labels.namespace }}") {
		t.Errorf("the PrometheusRule has %d groups, want 5 with their templates", len(groups))
	}
	dashboards := 0
	for key, object := range got {
		if !strings.HasSuffix(key, "-dashboard") {
			continue
		}
		dashboards++
		o := object.(map[string]any)
		if labels := fmt.Sprint(o["metadata"].(map[string]any)["labels"]); labels != "map[grafana_dashboard:1]" {
			t.Errorf("%s has labels %s", key, labels)
		}
		for name, text := range o["data"].(map[string]any) {
			var board map[string]any
			if err := json.Unmarshal([]byte(text.(string)), &board); err != nil || board["title"] == nil {
				t.Errorf("%s of %s is no dashboard: %v", name, key, err)
			}
		}
	}
	if dashboards != 3 {
		t.Errorf("there are %d dashboards, want 3", dashboards)
	}
	for chart, namespace := range map[string]string{"kruise": "kruise-system", "kruise-rollout": "kruise-rollout"} {
		all := fmt.Sprint(rendered(t, chart, scraped+",metrics.state.enabled=true"))
		for _, want := range []string{
			"--state-metrics=true", "kind:ServiceMonitor", "namespace:" + namespace, "map[containerPort:8080 name:metrics]",
			"map[port:metrics protocol:TCP]",
		} {
			if !strings.Contains(all, want) {
				t.Errorf("the chart %s has no %s", chart, want)
			}
		}
		if all = fmt.Sprint(rendered(t, chart)); strings.Contains(all, "monitoring.coreos.com") || strings.Contains(all, "--state-metrics") ||
			strings.Contains(all, "--trace") {
			t.Errorf("the chart %s has monitoring that nobody asked for", chart)
		}
	}
}
