{{- define "fleetworkload.labels" -}}
app.kubernetes.io/name: fleetworkload
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end -}}

{{- define "fleetworkload.selector" -}}
app.kubernetes.io/name: fleetworkload
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fleetworkload.image" -}}
{{- with .Values.manager.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "fleetworkload.subjects" -}}
- kind: ServiceAccount
  name: {{ .Values.serviceAccount.name }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- define "fleetworkload.config" -}}
apiVersion: config.fleetworkload.io/v1alpha1
kind: OperatorConfiguration
{{- with .Values.installation }}
installation: {{ . | quote }}
{{- end }}
backends:
{{ toYaml .Values.backends }}
guards:
{{ toYaml .Values.guards | indent 2 }}
{{- with .Values.kinds }}
kinds:
{{ toYaml . }}
{{- end }}
{{- with .Values.allowedKinds }}
allowedKinds:
{{ toYaml . }}
{{- end }}
{{- with .Values.dependencies }}
dependencies:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .Values.clusterAliases }}
clusterAliases:
{{ toYaml . }}
{{- end }}
{{- with .Values.tenancy }}
tenancy:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .Values.migrations }}
migrations:
{{ toYaml . | indent 2 }}
{{- end }}
{{- end -}}
