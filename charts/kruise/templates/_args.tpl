{{- /* The gates that are set, with those that follow from other values. What somebody sets is not set again. */}}
{{- define "kruise.featureGates" -}}
{{- $set := .Values.featureGates -}}
{{- $gates := list -}}
{{- with $set -}}{{- $gates = append $gates . -}}{{- end -}}
{{- if and (not .Values.daemon.enabled) (not (contains "KruiseDaemon=" $set)) -}}
{{- $gates = append $gates "KruiseDaemon=false" -}}
{{- end -}}
{{- if and .Values.resourceDistribution.enabled (not (contains "ResourceDistributionGate=" $set)) -}}
{{- $gates = append $gates "ResourceDistributionGate=true" -}}
{{- end -}}
{{- if and .Values.multicluster.enabled (not (contains "UnitedDeploymentMultiCluster=" $set)) -}}
{{- $gates = append $gates "UnitedDeploymentMultiCluster=true" -}}
{{- end -}}
{{- join "," $gates -}}
{{- end -}}

{{- define "kruise.metricsAddress" -}}
{{- $address := .Values.manager.metrics.address -}}
{{- if and .Values.metrics.serviceMonitor.enabled (has $address (list "127.0.0.1" "localhost" "[::1]")) -}}
{{- $address = "" -}}
{{- end -}}
{{ $address }}:{{ int .Values.manager.metrics.port }}
{{- end -}}

{{- /* Flags are there only where they say something else than the manager does without. */}}
{{- define "kruise.manager.args" -}}
{{- $manager := .Values.manager -}}
- --logging-format={{ $manager.loggingFormat | default "text" }}
{{- include "kruise.verbosity" $manager.log.level }}
{{- with include "kruise.featureGates" . }}
- --feature-gates={{ . }}
{{- end }}
{{- if and .Values.resourceDistribution.enabled .Values.resourceDistribution.moreKinds }}
- --resourcedistribution-kinds=ServiceAccount,LimitRange,NetworkPolicy
{{- end }}
{{- $metrics := include "kruise.metricsAddress" . }}
{{- if ne $metrics "127.0.0.1:8080" }}
- --metrics-addr={{ $metrics }}
{{- end }}
{{- include "kruise.stateMetrics" . }}
{{- include "kruise.traces" . }}
{{- if ne (int $manager.healthProbe.port) 8000 }}
- --health-probe-addr=:{{ $manager.healthProbe.port }}
{{- end }}
{{- if not $manager.pprofAddr }}
- --enable-pprof=false
{{- else if ne $manager.pprofAddr "localhost:8090" }}
- --pprof-addr={{ $manager.pprofAddr }}
{{- end }}
{{- range $manager.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "kruise.daemon.args" -}}
{{- $daemon := .Values.daemon -}}
- --logging-format={{ $daemon.loggingFormat | default "text" }}
- --addr=127.0.0.1:{{ $daemon.port }}
- --max-workers-for-pull-image={{ $daemon.maxWorkersForPullImage }}
{{- include "kruise.verbosity" $daemon.log.level }}
{{- with .Values.featureGates }}
- --feature-gates={{ . }}
{{- end }}
{{- if $daemon.enablePprof }}
- --enable-pprof=true
- --pprof-addr={{ $daemon.pprofAddr }}
{{- end }}
{{- with $daemon.socketFile }}
- --socket-file={{ . }}
{{- end }}
{{- if $daemon.credentialProvider.enable }}
- --plugin-config-file=/kruise/credential-provider/CredentialProviderPlugin.yaml
- --plugin-bin-dir=/kruise/plugins
{{- end }}
{{- range $daemon.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- /* What the daemon mounts beside the folders of the runtimes of the manifests, or in their place. */}}
{{- define "kruise.daemon.volumeMounts" -}}
{{- if .Values.daemon.socketLocation }}
- mountPath: /hostvarrun
  name: runtime
  readOnly: true
{{- end }}
{{- if .Values.daemon.credentialProvider.enable }}
- mountPath: /kruise/plugins
  name: credential-provider-programs
  readOnly: true
- mountPath: /kruise/credential-provider
  name: credential-provider-configuration
  readOnly: true
{{- end }}
{{- end -}}

{{- define "kruise.daemon.volumes" -}}
{{- with .Values.daemon.socketLocation }}
- hostPath:
    path: {{ . }}
    type: Directory
  name: runtime
{{- end }}
{{- with .Values.daemon.credentialProvider }}
{{- if .enable }}
- hostPath:
    path: {{ .hostPath }}
    type: Directory
  name: credential-provider-programs
- configMap:
    name: {{ .configmap }}
  name: credential-provider-configuration
{{- end }}
{{- end }}
{{- end -}}
