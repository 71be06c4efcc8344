{{/* A server of one pod with a volume, for trials. */}}
{{- define "muster.trialServer" }}
{{- $root := .root }}
apiVersion: v1
kind: Service
metadata:
  name: {{ $root.Release.Name }}-{{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "muster.labels" (list $root .name) | nindent 4 }}
spec:
  selector: {{- include "muster.selector" (list $root .name) | nindent 4 }}
  ports:
    {{- range $port, $number := .ports }}
    - {name: {{ $port }}, port: {{ $number }}, targetPort: {{ $port }}}
    {{- end }}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ $root.Release.Name }}-{{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "muster.labels" (list $root .name) | nindent 4 }}
spec:
  replicas: 1
  serviceName: {{ $root.Release.Name }}-{{ .name }}
  selector:
    matchLabels: {{- include "muster.selector" (list $root .name) | nindent 6 }}
  template:
    metadata:
      labels: {{- include "muster.labels" (list $root .name) | nindent 8 }}
    spec:
      automountServiceAccountToken: false
      securityContext:
        runAsNonRoot: true
        runAsUser: {{ .user }}
        runAsGroup: {{ .user }}
        fsGroup: {{ .user }}
        seccompProfile: {type: RuntimeDefault}
      containers:
        - name: {{ .name }}
          image: {{ .image }}
          {{- with .args }}
          args: {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with .environment }}
          env: {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            {{- range $port, $number := .ports }}
            - {name: {{ $port }}, containerPort: {{ $number }}}
            {{- end }}
          readinessProbe: {{- toYaml .probe | nindent 12 }}
          resources: {requests: {cpu: 100m, memory: 256Mi}, limits: {memory: 1Gi}}
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
          volumeMounts:
            - {name: data, mountPath: {{ .data }}}
            - {name: settings, mountPath: {{ .mount.path }}, readOnly: true}
            {{- with .scripts }}
            - {name: scripts, mountPath: {{ .path }}, readOnly: true}
            {{- end }}
      volumes:
        - name: settings
          secret:
            secretName: {{ $root.Release.Name }}-trial
            items: {{- toYaml .mount.items | nindent 14 }}
        {{- with .scripts }}
        - name: scripts
          secret:
            secretName: {{ $root.Release.Name }}-trial
            items: {{- toYaml .items | nindent 14 }}
        {{- end }}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec:
        accessModes: [ReadWriteOnce]
        resources: {requests: {storage: {{ $root.Values.trial.storage }}}}
{{- end }}
