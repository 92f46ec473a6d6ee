{{- define "verderer.labels" -}}
app.kubernetes.io/part-of: verderer
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "verderer.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "verderer.secret" -}}
- name: {{ .name }}
  valueFrom: {secretKeyRef: {name: {{ .secret }}, key: {{ .key }}}}
{{- end }}

{{- define "verderer.env" -}}
- {name: VERDERER_DATA_DIR, value: /var/lib/verderer}
- {name: VERDERER_LOG_FORMAT, value: json}
- {name: VERDERER_SERVER_PUBLIC_URL, value: {{ .Values.publicUrl | quote }}}
- {name: VERDERER_DATABASE_POOL_SIZE, value: {{ .Values.database.poolSize | quote }}}
- {name: VERDERER_OBJECTS_URL, value: {{ .Values.objects.url | quote }}}
- {name: VERDERER_OBJECTS_REGION, value: {{ .Values.objects.region | quote }}}
{{- with .Values.objects.endpoint }}
- {name: VERDERER_OBJECTS_ENDPOINT, value: {{ . | quote }}}
{{- end }}
{{ include "verderer.secret" (dict "name" "VERDERER_DATABASE_URL" "secret" .Values.database.existingSecret "key" "url") }}
{{- if .Values.database.behindPooler }}
{{ include "verderer.secret" (dict "name" "VERDERER_DATABASE_DIRECT_URL" "secret" .Values.database.existingSecret "key" "direct-url") }}
{{- end }}
{{ include "verderer.secret" (dict "name" "VERDERER_SECURITY_SECRET_KEY" "secret" .Values.security.existingSecret "key" "secret-key") }}
{{- if .Values.objects.existingSecret }}
{{ include "verderer.secret" (dict "name" "VERDERER_OBJECTS_ACCESS_KEY" "secret" .Values.objects.existingSecret "key" "access-key") }}
{{ include "verderer.secret" (dict "name" "VERDERER_OBJECTS_SECRET_KEY" "secret" .Values.objects.existingSecret "key" "secret-key") }}
{{- end }}
{{- if .Values.caConfigMap }}
- {name: SSL_CERT_FILE, value: /etc/verderer-ca/ca.crt}
- {name: PGSSLROOTCERT, value: /etc/verderer-ca/ca.crt}
{{- else }}
- {name: PGSSLROOTCERT, value: /etc/ssl/certs/ca-certificates.crt}
{{- end }}
{{- range $name, $value := .Values.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- define "verderer.pod" -}}
serviceAccountName: {{ .Values.serviceAccountName }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
- {name: state, emptyDir: {}}
- {name: tmp, emptyDir: {}}
{{- if .Values.caConfigMap }}
- name: ca
  configMap: {name: {{ .Values.caConfigMap }}}
{{- end }}
{{- end }}

{{- define "verderer.container" -}}
image: {{ include "verderer.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
- {name: state, mountPath: /var/lib/verderer}
- {name: tmp, mountPath: /tmp}
{{- if .Values.caConfigMap }}
- {name: ca, mountPath: /etc/verderer-ca, readOnly: true}
{{- end }}
{{- end }}
