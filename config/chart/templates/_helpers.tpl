{{/* The image of a manager: by its digest where there is one. */}}
{{- define "openshift-agent.image" -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end }}

{{/* The arguments of the manager of a provider: its own flags, and those that the values for both stand for. */}}
{{- define "openshift-agent.args" -}}
{{- $flags := deepCopy .provider.flags }}
{{- with .provider.inPlaceUpdates }}{{ $_ := set $flags "in-place-updates" .enabled }}{{ end }}
{{- if include "openshift-agent.authorities.ofService" .provider }}{{ $_ := set $flags "assisted-service-authorities" "/etc/openshift-agent/assisted-service-authorities" }}{{ end }}
{{- with .values.watchNamespace }}{{ $_ := set $flags "namespace" . }}{{ end }}
{{- with .values.watchFilter }}{{ $_ := set $flags "watch-filter" . }}{{ end }}
{{- range $name, $value := $flags }}
{{- $text := kindIs "string" $value | ternary $value (toJson $value) }}
- {{ eq $text "true" | ternary (print "--" $name) (print "--" $name "=" $text) | quote }}
{{- end }}
{{- end }}

{{/* The trusted authorities: a volume, its mount and the variable by which Go reads the directory. Go also reads the file with the authorities of the image (crypto/x509). The authorities of assisted-service have their own volume, which a flag names. The volumes and mounts of the user follow. */}}
{{- define "openshift-agent.volumes" -}}
{{- if or .values.trustedAuthorities.configMap .values.trustedAuthorities.secret }}
- name: trusted-authorities
  projected:
    sources:
    {{- include "openshift-agent.authorities.sources" .values.trustedAuthorities | nindent 4 }}
{{- end }}
{{- if include "openshift-agent.authorities.ofService" .provider }}
- name: assisted-service-authorities
  projected:
    sources:
    {{- include "openshift-agent.authorities.sources" .provider.assistedServiceAuthorities | nindent 4 }}
{{- end }}
{{- with .provider.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "openshift-agent.authorities.sources" -}}
{{- with .configMap }}
- configMap:
    name: {{ . }}
{{- end }}
{{- with .secret }}
- secret:
    name: {{ . }}
{{- end }}
{{- end }}

{{/* Not empty if a provider has authorities of assisted-service. */}}
{{- define "openshift-agent.authorities.ofService" -}}
{{- with .assistedServiceAuthorities }}{{ if or .configMap .secret }}true{{ end }}{{ end }}
{{- end }}

{{- define "openshift-agent.volumeMounts" -}}
{{- if or .values.trustedAuthorities.configMap .values.trustedAuthorities.secret }}
- name: trusted-authorities
  mountPath: /etc/openshift-agent/trusted-authorities
  readOnly: true
{{- end }}
{{- if include "openshift-agent.authorities.ofService" .provider }}
- name: assisted-service-authorities
  mountPath: /etc/openshift-agent/assisted-service-authorities
  readOnly: true
{{- end }}
{{- with .provider.volumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "openshift-agent.env" -}}
{{- if or .values.trustedAuthorities.configMap .values.trustedAuthorities.secret }}
- name: SSL_CERT_DIR
  value: /etc/openshift-agent/trusted-authorities:/etc/ssl/certs:/etc/pki/tls/certs
{{- end }}
{{- end }}

{{/* The topology spread constraints. A constraint without selector would select no Pod: it gets the selector of the Deployment. */}}
{{- define "openshift-agent.spread" -}}
{{- $selector := .selector }}
{{- range .constraints }}
- {{ hasKey . "labelSelector" | ternary . (merge (dict "labelSelector" $selector) .) | toJson }}
{{- end }}
{{- end }}
