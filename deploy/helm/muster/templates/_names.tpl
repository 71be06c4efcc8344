{{/* The image of all services. */}}
{{- define "muster.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Labels of everything. Call with (list $ COMPONENT). */}}
{{- define "muster.labels" -}}
{{- $root := index . 0 -}}
{{ include "muster.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- end }}

{{- define "muster.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Cluster-wide objects are named by release and namespace, for there may be several releases. */}}
{{- define "muster.clusterName" -}}
{{- $root := index . 0 -}}
{{ $root.Release.Namespace }}-{{ $root.Release.Name }}-{{ index . 1 }}
{{- end }}

{{- define "muster.natsURL" -}}
{{- if .Values.trial.enabled -}}
nats://{{ .Release.Name }}-nats.{{ .Release.Namespace }}.svc:4222
{{- else -}}
{{ .Values.nats.url }}
{{- end -}}
{{- end }}

{{/* The services of this mode. */}}
{{- define "muster.services" -}}
{{- if eq .Values.mode "all" -}}
intake queue-manager capacity-watcher dispatcher
{{- if .Values.console.enabled }} console{{ end -}}
{{- if (.Values.shadow).enabled }} shadow{{ end -}}
{{- else -}}
capacity-watcher dispatcher
{{- if .Values.kubernetesController.enabled }} intake{{ end -}}
{{- end -}}
{{- end }}

{{/* The services that talk to the API server, and so have rights and a token. */}}
{{- define "muster.accounts" -}}
capacity-watcher dispatcher
{{- if .Values.kubernetesController.enabled }} intake{{ end -}}
{{- end }}

{{/* All namespaces in which the dispatcher may write, as a JSON list under the key names. */}}
{{- define "muster.namespaces" -}}
{{- $names := .Values.namespaces -}}
{{- if eq .Values.mode "all" -}}
{{- range .Values.queues }}{{ $names = concat $names .namespaces }}{{ end -}}
{{- range .Values.localQueues }}{{ $names = append $names .namespace }}{{ end -}}
{{- end -}}
{{ dict "names" ($names | uniq | sortAlpha) | toJson }}
{{- end }}

{{/* The queues whose objects move, as a JSON list under the key names. */}}
{{- define "muster.movingQueues" -}}
{{- $names := .Values.kubernetesController.movingQueues -}}
{{- if eq .Values.mode "all" -}}
{{- range .Values.queues }}{{ if eq (.homeObjects | default "") "move" }}{{ $names = append $names .name }}{{ end }}{{ end -}}
{{- end -}}
{{ dict "names" ($names | uniq | sortAlpha) | toJson }}
{{- end }}

{{/* By what the admission rules of each kind are enforced, as a JSON object. Webhooks are
part of the Kubernetes controller. */}}
{{- define "muster.admission" -}}
{{- $controller := .Values.kubernetesController -}}
{{- $validating := "policies" -}}
{{- $mutating := ternary "policies" "webhooks" (semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version) -}}
{{- if ne $controller.admission "auto" -}}
{{- $validating = $controller.admission -}}
{{- $mutating = $controller.admission -}}
{{- end -}}
{{- if not $controller.enabled -}}
{{- $validating = "policies" -}}
{{- $mutating = "policies" -}}
{{- end -}}
{{ dict "validating" $validating "mutating" $mutating "any" (or (eq $validating "webhooks") (eq $mutating "webhooks")) | toJson }}
{{- end }}
