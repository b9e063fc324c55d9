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
