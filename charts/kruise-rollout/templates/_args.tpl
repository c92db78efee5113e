{{- /* Flags are there only where they say something else than the manager does without. */}}
{{- define "kruise.rollout.args" -}}
{{- $rollout := .Values.rollout -}}
- --logging-format={{ $rollout.loggingFormat | default "text" }}
{{- include "kruise.verbosity" $rollout.log.level }}
{{- with $rollout.featureGates }}
- --feature-gates={{ . }}
{{- end }}
{{- if ne $rollout.metricsBindAddr ":8080" }}
- --metrics-bind-address={{ $rollout.metricsBindAddr }}
{{- end }}
{{- if ne (int $rollout.healthBindPort) 8081 }}
- --health-probe-bind-address=:{{ $rollout.healthBindPort }}
{{- end }}
{{- range $rollout.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}
