{{/* The image of a manager: by its digest where there is one. */}}
{{- define "openshift-agent.image" -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end }}

{{/* The arguments of the manager of a provider: its own flags, and those that the values for both stand for. */}}
{{- define "openshift-agent.args" -}}
{{- $flags := deepCopy .provider.flags }}
{{- with .provider.inPlaceUpdates }}{{ $_ := set $flags "in-place-updates" .enabled }}{{ end }}
{{- with .values.watchNamespace }}{{ $_ := set $flags "namespace" . }}{{ end }}
{{- with .values.watchFilter }}{{ $_ := set $flags "watch-filter" . }}{{ end }}
{{- range $name, $value := $flags }}
{{- $text := kindIs "string" $value | ternary $value (toJson $value) }}
- {{ eq $text "true" | ternary (print "--" $name) (print "--" $name "=" $text) | quote }}
{{- end }}
{{- end }}

{{/* The trusted authorities: a volume, its mount and the variable by which Go reads the directory. Go also reads the file with the authorities of the image (crypto/x509). */}}
{{- define "openshift-agent.authorities.volumes" -}}
{{- if or .trustedAuthorities.configMap .trustedAuthorities.secret }}
- name: trusted-authorities
  projected:
    sources:
    {{- with .trustedAuthorities.configMap }}
    - configMap:
        name: {{ . }}
    {{- end }}
    {{- with .trustedAuthorities.secret }}
    - secret:
        name: {{ . }}
    {{- end }}
{{- end }}
{{- end }}

{{- define "openshift-agent.authorities.mounts" -}}
{{- if or .trustedAuthorities.configMap .trustedAuthorities.secret }}
- name: trusted-authorities
  mountPath: /etc/openshift-agent/trusted-authorities
  readOnly: true
{{- end }}
{{- end }}

{{- define "openshift-agent.authorities.env" -}}
{{- if or .trustedAuthorities.configMap .trustedAuthorities.secret }}
- name: SSL_CERT_DIR
  value: /etc/openshift-agent/trusted-authorities:/etc/ssl/certs:/etc/pki/tls/certs
{{- end }}
{{- end }}
