{{/* "field" describes a field: its type and validation, its documentation, and the values of an enumeration. */}}
{{- define "field" -}}
{{- $local := eq .type.Package .package -}}
{{- $enumeration := .type.EnumValues -}}
{{- $reused := and $local (hasKey .described .type.Name) (ne .anchor (get (get .described .type.Name | default dict) "anchor" | default "")) -}}
_{{ if and $local .type.Members }}object{{ if .array }} array{{ end -}}
{{ else if and $local (eq (printf "%d" .type.Kind) "0") }}{{ markdownRenderType .type.UnderlyingType }}{{ if .array }} array{{ end -}}
{{ else if eq (printf "%d" .type.Kind) "2" "3" }}object
{{- else }}{{ markdownRenderType .field.Type }}{{ end }}_
{{- if has "Required: {}" .field.Validation }}, required{{ end }}
{{- with .field.Default }}, default `{{ . }}`{{ end }}
{{- range without .field.Validation "Required: {}" "Optional: {}" "Schemaless: {}" "XIntOrString: {}" }}
{{- if not (and $enumeration (hasPrefix "Enum: " .)) }}, {{ . }}{{ end }}
{{- end }}
{{- with .type.ValueType }}{{ range .Validation }}, values:{{ . }}{{ end }}{{ end }}

{{ if eq .field.Name "metadata" }}metadata contains the labels and annotations.{{ else }}{{ template "text" .field.Doc }}{{ end }}
{{ if $reused }}
{{- $target := get .described .type.Name }}
The fields are those of [{{ $target.title }}](#{{ $target.anchor }}).
{{ else if and $local .type.Members (ne (trimPrefix .type.Name .type.Doc) (trimPrefix .field.Name .field.Doc)) }}
{{ template "text" .type.Doc }}
{{ end }}
{{- if $enumeration }}
{{ range $enumeration }}- `{{ .Name }}`{{ with .Doc }}: {{ template "text" (regexReplaceAll "^\\w+:? " . "") }}{{ end }}
{{ end }}
{{- end }}
{{- end }}

{{/* "text" is documentation of Go as Markdown. */}}
{{- define "text" -}}
{{ . | replace "<" "&lt;" | replace ">" "&gt;" | replace "*" "\\*" | trim }}
{{- end }}
