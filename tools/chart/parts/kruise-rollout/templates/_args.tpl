{{- define "kruise.rollout.metricsPort" -}}
{{- $port := regexReplaceAll "^.*:" .Values.rollout.metricsBindAddr "" -}}
{{ if eq $port "0" }}8080{{ else }}{{ $port }}{{ end }}
{{- end -}}

{{- /* Flags are there only where they say something else than the manager does without. */}}
{{- define "kruise.rollout.args" -}}
{{- $rollout := .Values.rollout -}}
- --logging-format={{ $rollout.loggingFormat | default "text" }}
{{- include "kruise.verbosity" $rollout.log.level }}
{{- with $rollout.featureGates }}
- --feature-gates={{ . }}
{{- end }}
{{- $metrics := $rollout.metricsBindAddr }}
{{- if and .Values.metrics.serviceMonitor.enabled (regexMatch "^(127.0.0.1|localhost|\\[::1\\]):|^0$" $metrics) }}
{{- $metrics = printf ":%s" (include "kruise.rollout.metricsPort" .) }}
{{- end }}
{{- if ne $metrics ":8080" }}
- --metrics-bind-address={{ $metrics }}
{{- end }}
{{- include "kruise.stateMetrics" . }}
{{- include "kruise.traces" . }}
{{- if ne (int $rollout.healthBindPort) 8081 }}
- --health-probe-bind-address=:{{ $rollout.healthBindPort }}
{{- end }}
{{- range $rollout.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}
