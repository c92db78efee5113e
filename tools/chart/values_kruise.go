package main

import "slices"

// names of namespaces, of paths of folders, and of digests of images.
const (
	namespaceName = `^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`
	folder        = `^(/.*)?$`
	digest        = `^(sha256:[0-9a-f]{64})?$`
	cidr          = `^[0-9a-fA-F.:]+/[0-9]+$`
)

// kruiseValues are the values of the chart of manager and daemon. Their names are those of the chart that clusters have had, so that a
// file of values carries over.
func kruiseValues(version string) []value {
	return slices.Concat(commonValues("kruise-system"), []value{
		list("installation.roleListGroups", `["*"]`, "string",
			"API groups of the workloads whose scale the manager may read, for PodUnavailableBudgets."),
		text("featureGates", "", "Feature gates of managers and daemons, as Name=true or Name=false, joined by commas."),
		words("externalCerts.annotations",
			"Annotations of CRDs and webhook configurations by which another controller, such as cert-manager, fills in the CA; "+
				"with the gate EnableExternalCerts."),
		truth("protection.enabled", true, "Install the policies that protect objects from deletion."),
		truth("resourceDistribution.enabled", false,
			"Serve ResourceDistributions: give the manager all Secrets and ConfigMaps, and set the gate."),
		truth("resourceDistribution.moreKinds", false, "Let them copy ServiceAccounts, LimitRanges and NetworkPolicies, too."),
		truth("multicluster.enabled", false,
			"Let UnitedDeployments use other clusters: give the manager the cluster objects, and set the gate."),
		list("multicluster.namespaces", "[default]", "string", "Namespaces of the cluster objects."),
		number("webhookConfiguration.timeoutSeconds", 0, 0, 30,
			"Seconds that an API server waits for a manager; 0 for those of each webhook, 3 to 5."),
		truth("webhookConfiguration.aksIntegration", false, "Keep the admission enforcer of AKS from changing the webhook configurations."),
		text("helmHooks.image.repository", "", "Image of the guard that looks before an uninstall; empty for the manager's."),
		text("helmHooks.image.tag", "", "Its tag; empty for the manager's."),
	}, metricsValues(), []value{
		truth("metrics.prometheusRule.enabled", false,
			"Make a PrometheusRule with the alerts of docs/alerts.md, also those about releases."),
		words("metrics.prometheusRule.labels", "Labels by which Prometheus finds the PrometheusRule."),
		truth("grafana.dashboards.enabled", false, "Make ConfigMaps with the dashboards, for the sidecar of Grafana."),
		mapping("grafana.dashboards.labels", `{grafana_dashboard: "1"}`, "Labels by which the sidecar finds them."),
	}, traceValues(), managerValues(version), daemonValues(version))
}

// metricsValues are those of metrics, which both charts have.
func metricsValues() []value {
	return []value{
		truth("metrics.serviceMonitor.enabled", false,
			"Make a Service and a ServiceMonitor for the metrics of the managers, which are then served by HTTPS to who may get "+
				"the path /metrics."),
		text("metrics.serviceMonitor.interval", "30s", "How often they are read."),
		words("metrics.serviceMonitor.labels", "Labels by which Prometheus finds the ServiceMonitor."),
		truth("metrics.state.enabled", false, "Serve metrics of the state of each workload, which most alerts and dashboards need."),
		number("metrics.state.limit", 5000, 1, 1000000, "How many objects have such metrics."),
	}
}

// traceValues are those of traces, which both charts have.
func traceValues() []value {
	return []value{
		text("traces.endpoint", "", "URL of an OpenTelemetry collector that traces of rollouts are sent to by OTLP over HTTP, such as "+
			"http://collector.observability:4318; empty for none."),
		number("traces.percent", 100, 0, 100, "Of how many rollouts of a hundred traces are sent."),
	}
}

// commonValues are those that both charts have.
func commonValues(namespace string) []value {
	apiServers := list("networkPolicy.apiServers", "[]", "string",
		"Addresses of the API servers, as CIDRs: with them, the webhooks can be reached from nowhere else.")
	apiServers.schema["items"] = map[string]any{"type": "string", "pattern": cidr}
	return []value{
		truth("crds.managed", true, "Install the CRDs, and upgrade them."),
		truth("crds.keep", true,
			"Keep the CRDs when the release is uninstalled: without them, all objects of their kinds are deleted, and their Pods."),
		shaped("installation.namespace", namespace, namespaceName, "Namespace of the managers."),
		truth("installation.createNamespace", true, "Make that namespace, if it is not the one that the release is in."),
		truth("flowControl.enabled", true,
			"Give managers and daemons priority levels of their own (API Priority and Fairness), so that busy API servers share their "+
				"time between them and others."),
		truth("uninstall.guard", true, "Refuse an uninstall while something is in use that would stand still without managers."),
		list("imagePullSecrets", "[]", "object", "Secrets with credentials of the registry of the images, as [{name: NAME}]."),
		words("serviceAccount.annotations", "Annotations of the ServiceAccounts."),
		truth("networkPolicy.enabled", true,
			"Close all ports of the managers but those of the webhooks and, where a ServiceMonitor is, of the metrics."),
		apiServers,
	}
}

// imageValues are those of an image.
func imageValues(path, repository, version string) []value {
	return []value{
		text(path+".repository", repository, "Image, without tag."),
		text(path+".tag", version, "Tag of the image."),
		shaped(path+".digest", "", digest, "Digest of the image, such as sha256:1a2b…, in place of the tag."),
		choice(path+".pullPolicy", "IfNotPresent", []string{"Always", "IfNotPresent", "Never"}, "When nodes pull the image."),
	}
}

// podValues are those of the Pods of a manager.
func podValues(prefix string) []value {
	return []value{
		mapping(prefix+"resources", "{requests: {cpu: 100m, memory: 256Mi}, limits: {memory: 1Gi}}",
			"Requests and limits. The garbage collector of Go keeps below the limit on memory (GOMEMLIMIT)."),
		mapping(prefix+"nodeSelector", "{}", "Labels of the nodes that Pods of the manager may run on."),
		list(prefix+"tolerations", "[]", "object", "Taints that they tolerate."),
		list(prefix+"topologySpreadConstraints", "[]", "object",
			"How they are spread; empty for two nodes, and two zones where there are."),
		truth(prefix+"podDisruptionBudget.enabled", true, "Make a PodDisruptionBudget for the managers."),
		number(prefix+"podDisruptionBudget.maxUnavailable", 1, 0, 100, "How many managers may be evicted at a time."),
		truth(prefix+"hostNetwork", false,
			"Run the managers on the network of their nodes, where API servers do not reach Pods otherwise."),
	}
}

func managerValues(version string) []value {
	return slices.Concat([]value{
		number("manager.replicas", 2, 1, 20, "Number of managers."),
	}, imageValues("manager.image", "kruise-manager", version), []value{
		level("manager.log.level"),
		choice("manager.loggingFormat", "json", []string{"", "json", "text"}, "Format of the log; empty is text."),
		port("manager.webhook.port", 9876, "Port of the webhooks."),
		port("manager.metrics.port", 8080, "Port of the metrics."),
		text("manager.metrics.address", "127.0.0.1",
			"Address of the metrics; empty for all addresses, by HTTPS and for who may get the path /metrics."),
		port("manager.healthProbe.port", 8000, "Port of /healthz and /readyz."),
		text("manager.pprofAddr", "localhost:8090", "Address of pprof; empty for none."),
		{"manager.resyncPeriod", `""`, map[string]any{"type": []string{"string", "integer"}},
			"Taken for value files of older charts, and ignored."},
		mapping("manager.nodeAffinity", "{}", "Node affinity of the managers."),
		text("manager.priorityClassName", "system-cluster-critical",
			"Priority of the managers: Pods that webhooks judge can't be created without one."),
		list("manager.extraArgs", "[]", "string", "Further flags, such as --cloneset-workers=5."),
		list("manager.extraEnvs", "[]", "object", "Further environment variables."),
	}, podValues("manager."))
}

func daemonValues(version string) []value {
	maxUnavailable := value{"daemon.maxUnavailable", `"10%"`, map[string]any{"type": []string{"integer", "string"},
		"pattern": "^[0-9]+%?$"},
		"Number or share of the nodes whose daemon an upgrade restarts at a time."}
	return slices.Concat([]value{
		truth("daemon.enabled", true, "Run a daemon on every node; without, the gate KruiseDaemon is turned off."),
	}, imageValues("daemon.image", "kruise-daemon", version), []value{
		level("daemon.log.level"),
		choice("daemon.loggingFormat", "json", []string{"", "json", "text"}, "Format of the log; empty is text."),
		port("daemon.port", 10221, "Port of metrics and probes, on the loopback of the node."),
		truth("daemon.enablePprof", false, "Serve pprof."),
		text("daemon.pprofAddr", "localhost:10222", "Address of pprof."),
		shaped("daemon.socketLocation", "", folder,
			"Folder of the node where the container runtime keeps its socket; empty for /run/containerd and /run/crio."),
		text("daemon.socketFile", "", "Name of the socket in that folder; empty to look for those of containerd, CRI-O and cri-dockerd."),
		number("daemon.maxWorkersForPullImage", 2, -1, 100, "Images that a node pulls at the same time; -1 for no limit."),
		words("daemon.nodeSelector", "Labels of the nodes that have a daemon."),
		mapping("daemon.affinity", "{}", "Affinity of the daemons; empty for all nodes but virtual ones."),
		list("daemon.tolerations", "[{operator: Exists}]", "object", "Taints that they tolerate."),
		text("daemon.priorityClassName", "system-node-critical", "Priority of the daemons."),
		maxUnavailable,
		mapping("daemon.resources", "{requests: {cpu: 10m, memory: 48Mi}, limits: {memory: 128Mi}}", "Requests and limits."),
		list("daemon.extraArgs", "[]", "string", "Further flags."),
		list("daemon.extraEnvs", "[]", "object", "Further environment variables."),
		truth("daemon.credentialProvider.enable", false, "Run programs that give credentials of registries, as kubelets do."),
		shaped("daemon.credentialProvider.hostPath", "/etc/kubernetes/credential-providers", folder,
			"Folder of the node with these programs."),
		text("daemon.credentialProvider.configmap", "credential-provider-config",
			"ConfigMap in the namespace of the managers with their configuration, as CredentialProviderPlugin.yaml."),
	})
}
