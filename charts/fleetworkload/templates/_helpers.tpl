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

{{- /* The rules of a ClusterRole, without what dependencies.leaveOut keeps the operator from reading. */ -}}
{{- define "fleetworkload.rules" -}}
{{- $leftOut := list -}}
{{- range .leaveOut -}}
{{- $leftOut = append $leftOut (printf "%ss" (lower .)) -}}
{{- end -}}
{{- $rules := list -}}
{{- range .rules -}}
{{- $rule := . -}}
{{- $resources := list -}}
{{- range $rule.resources -}}
{{- if not (has . $leftOut) -}}
{{- $resources = append $resources . -}}
{{- end -}}
{{- end -}}
{{- if $resources -}}
{{- $rules = append $rules (merge (dict "resources" $resources) $rule) -}}
{{- end -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end -}}

{{- /* The Secrets with the backends' kubeconfigs, each once. */ -}}
{{- define "fleetworkload.kubeconfigs" -}}
{{- $names := list -}}
{{- range .Values.backends -}}
{{- with dig "connection" "secretRef" "name" "" . -}}
{{- $names = append $names . -}}
{{- end -}}
{{- end -}}
{{- toYaml (uniq $names) -}}
{{- end -}}

{{- /* The rules of a Role, with these names where it has some, and without those that are for no object then. */ -}}
{{- define "fleetworkload.named" -}}
{{- $names := .names -}}
{{- $rules := list -}}
{{- range .rules -}}
{{- if not .resourceNames -}}
{{- $rules = append $rules . -}}
{{- else if $names -}}
{{- $rules = append $rules (merge (dict "resourceNames" $names) .) -}}
{{- end -}}
{{- end -}}
{{- toYaml $rules -}}
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
{{- with .Values.tracing }}
tracing:
{{ toYaml . | indent 2 }}
{{- end }}
{{- end -}}
