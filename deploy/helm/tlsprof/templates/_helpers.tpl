{{- define "tlsprof.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tlsprof.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tlsprof.labels" -}}
{{ include "tlsprof.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "tlsprof.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "tlsprof.name" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/*
How the kubelet asks the agent, by the path of a dict with `path` and `root`. It asks for no password
there, but whether it speaks TLS, and wants a certificate, is in a file that the chart cannot read.
*/}}
{{- define "tlsprof.health" -}}
{{- if .root.Values.metrics.webConfigSecret -}}
tcpSocket:
  port: metrics
{{- else -}}
httpGet:
  path: {{ .path }}
  port: metrics
{{- end -}}
{{- end -}}

{{/*
An AppArmor profile in the words of the annotation, which was there before the field.
*/}}
{{- define "tlsprof.apparmor" -}}
{{- if eq .type "Localhost" -}}
localhost/{{ required "appArmorProfile.localhostProfile" .localhostProfile }}
{{- else -}}
{{ get (dict "RuntimeDefault" "runtime/default" "Unconfined" "unconfined") .type }}
{{- end -}}
{{- end -}}
