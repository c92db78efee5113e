{{- /* An image by its digest if it has one, and else by its tag. */}}
{{- define "kruise.image" -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ required "an image needs a tag or a digest" .tag }}
{{- end -}}
{{- end -}}

{{- /* The limit on memory that the garbage collector of Go knows: 900 of 1024 parts of that of the container, as MiB; empty without a limit. */}}
{{- define "kruise.goMemLimit" -}}
{{- $memory := toString (dig "limits" "memory" "" .) -}}
{{- with $memory -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 -}}
{{- $number := regexFind "^[0-9]+(\\.[0-9]+)?" . -}}
{{- $unit := trimPrefix $number . -}}
{{- if not (and $number (hasKey $units $unit)) -}}
{{- fail (printf "limits.memory is %q: write a number with Ki, Mi, Gi, k, M or G, such as 1Gi" .) -}}
{{- end -}}
{{- printf "%dMiB" (int64 (floor (divf (mulf (float64 $number) (get $units $unit) 900) 1073741824))) -}}
{{- end -}}
{{- end -}}

{{- /* --v, if it is not 0. */}}
{{- define "kruise.verbosity" -}}
{{- if ne (toString .) "0" }}
- --v={{ . }}
{{- end -}}
{{- end -}}

{{- define "kruise.stateMetrics" -}}
{{- if .Values.metrics.state.enabled }}
- --state-metrics=true
{{- if ne (int .Values.metrics.state.limit) 5000 }}
- --state-metrics-limit={{ int .Values.metrics.state.limit }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "kruise.traces" -}}
{{- with .Values.traces.endpoint }}
- --trace-endpoint={{ . }}
{{- if ne (int $.Values.traces.percent) 100 }}
- --trace-sampling={{ divf (float64 (int $.Values.traces.percent)) 100 }}
{{- end }}
{{- end }}
{{- end -}}
