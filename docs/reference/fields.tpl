{{/* "fields" describes the fields of a type: type, the anchor and the title of the group, its name within the kind, and
     described (the title and the anchor of the group that describes a type, by the name of the type). A type that
     several fields have is described once. */}}
{{- define "fields" -}}
{{- $in := . -}}
{{- $groups := list -}}
{{- $fields := list -}}
{{- range $field := .type.Members }}
{{- if or $in.name (ne $field.Name "metadata") }}
{{- $type := $field.Type -}}
{{- $array := false -}}
{{- range until 3 }}
{{- if has (printf "%d" $type.Kind) (list "4" "5") }}
{{- if eq (printf "%d" $type.Kind) "5" }}{{ $array = true }}{{ end -}}
{{- $type = $type.UnderlyingType }}
{{- end }}
{{- end }}
{{- $name := list $in.name $field.Name | compact | join "." -}}
{{- $anchor := printf "%s.%s" $in.anchor $field.Name -}}
{{- $title := printf "%s.%s" $in.title $field.Name -}}
{{- $isGroup := and (eq $type.Package $in.type.Package) $type.Members (not (hasKey $in.described $type.Name)) -}}
{{- $described := dict "field" $field "type" $type "array" $array "name" $name "anchor" $anchor "title" $title
  "described" $in.described "package" $in.type.Package -}}
{{- if $isGroup }}
{{- $_ := set $in.described $type.Name (dict "title" $title "anchor" $anchor) -}}
{{- $groups = append $groups $described -}}
{{- else }}
{{- $fields = append $fields $described -}}
{{- end }}
{{- end }}
{{- end }}

Fields: {{ range $i, $field := concat $fields $groups }}{{ if $i }}, {{ end }}[`{{ $field.field.Name }}`](#{{ $field.anchor }}){{ end }}
{{ range $fields }}
#### <a id="{{ .anchor }}"></a>{{ .field.Name }}

{{ template "field" . }}
{{- end }}
{{- range $groups }}
### <a id="{{ .anchor }}"></a>{{ .name }}

{{ template "field" . }}
{{- template "fields" . }}
{{- end }}
{{- end }}
