{{/*
One service. Call with a dict: root, name, values (its part of the values),
arguments (list), environment (list of env entries), mounts (list of dicts with
name, secret or configMap, path, items), strategy, withoutNATS; command (list) and
tag where they are not those of the service and the release.
*/}}
{{- define "muster.deployment" -}}
{{- $root := .root -}}
{{- $nats := not .withoutNATS -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $root.Release.Name }}-{{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "muster.labels" (list $root .name) | nindent 4 }}
spec:
  replicas: {{ .values.replicas }}
  {{- with .strategy }}
  strategy: {type: {{ . }}}
  {{- end }}
  selector:
    matchLabels: {{- include "muster.selector" (list $root .name) | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "muster.labels" (list $root .name) | nindent 8 }}
        {{- with $root.Values.podLabels }}{{ toYaml . | nindent 8 }}{{ end }}
      annotations:
        {{- with .configuration }}
        checksum/configuration: {{ . | sha256sum }}
        {{- end }}
        {{- with $root.Values.podAnnotations }}{{ toYaml . | nindent 8 }}{{ end }}
    spec:
      serviceAccountName: {{ $root.Release.Name }}-{{ .name }}
      automountServiceAccountToken: {{ has .name (include "muster.accounts" $root | splitList " ") }}
      terminationGracePeriodSeconds: 30
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      {{- with $root.Values.image.pullSecrets }}
      imagePullSecrets: {{- range . }}{{ dict "name" . | list | toYaml | nindent 8 }}{{ end }}
      {{- end }}
      {{- with $root.Values.ownNodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "muster.selector" (list $root .name) | nindent 14 }}
      containers:
        - name: {{ .name }}
          image: {{ if .tag }}{{ $root.Values.image.repository }}:{{ .tag }}{{ else }}{{ include "muster.image" $root }}{{ end }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          command: [{{ .command | default (list .name) | join ", " }}]
          args:
            - --health-address=0.0.0.0:8080
            - --log-level={{ $root.Values.logLevel }}
            {{- if and $nats (not $root.Values.trial.enabled) }}
            - --nats-url={{ include "muster.natsURL" $root }}
            - --nats-credentials=/etc/muster/nats/credentials
            {{- if $root.Values.nats.tlsSecret }}
            - --nats-ca=/etc/muster/nats-tls/ca.crt
            - --nats-certificate=/etc/muster/nats-tls/tls.crt
            - --nats-key=/etc/muster/nats-tls/tls.key
            {{- end }}
            {{- end }}
            {{- if $root.Values.tracing.endpoint }}
            - --otlp-endpoint={{ $root.Values.tracing.endpoint }}
            - --trace-ratio={{ $root.Values.tracing.ratio }}
            {{- end }}
            {{- range .arguments }}
            - {{ . | quote }}
            {{- end }}
          env:
            # Leaves room below the limit for what is not on the heap.
            - name: GOMEMLIMIT
              valueFrom: {resourceFieldRef: {resource: limits.memory}}
            {{- if and $nats $root.Values.trial.enabled }}
            - name: MUSTER_{{ .name | upper | replace "-" "_" }}_NATS_URL
              valueFrom: {secretKeyRef: {name: {{ $root.Release.Name }}-trial, key: {{ .name }}-nats-url}}
            {{- end }}
            {{- with .environment }}{{ toYaml . | nindent 12 }}{{ end }}
          ports:
            - {name: health, containerPort: 8080}
          startupProbe:
            httpGet: {path: /healthz, port: health}
            periodSeconds: 2
            failureThreshold: 60
          livenessProbe:
            httpGet: {path: /healthz, port: health}
            periodSeconds: 10
            timeoutSeconds: 3
          readinessProbe:
            httpGet: {path: /readyz, port: health}
            periodSeconds: 5
            timeoutSeconds: 3
          resources: {{- toYaml .values.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            {{- if and $nats (not $root.Values.trial.enabled) }}
            - {name: nats, mountPath: /etc/muster/nats, readOnly: true}
            {{- if $root.Values.nats.tlsSecret }}
            - {name: nats-tls, mountPath: /etc/muster/nats-tls, readOnly: true}
            {{- end }}
            {{- end }}
            {{- range .mounts }}
            - {name: {{ .name }}, mountPath: {{ .path }}, readOnly: true}
            {{- end }}
      volumes:
        {{- if and $nats (not $root.Values.trial.enabled) }}
        - name: nats
          secret:
            secretName: {{ $root.Values.nats.credentialsSecret }}
            items: [{key: {{ .name }}, path: credentials}]
        {{- if $root.Values.nats.tlsSecret }}
        - name: nats-tls
          secret: {secretName: {{ $root.Values.nats.tlsSecret }}}
        {{- end }}
        {{- end }}
        {{- range .mounts }}
        - name: {{ .name }}
          {{- toYaml .source | nindent 10 }}
        {{- end }}
{{- end }}
