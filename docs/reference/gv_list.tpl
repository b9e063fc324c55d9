{{/* Sections of docs/reference.md: a kind, each group of its fields, each field. The anchor of a field is its path:
     openshiftassistedcontrolplane.spec.replicas. The anchors stay when headings change. */}}
{{- define "gvList" -}}
{{- range $gv := . }}
{{- $described := dict -}}
{{- range $gv.SortedKinds }}
{{- $kind := $gv.TypeForKind . }}

## {{ . }}

{{ template "text" $kind.Doc }}

API version: `{{ $gv.GroupVersionString }}`
{{ template "fields" (dict "type" $kind "anchor" (lower .) "title" . "name" "" "described" $described) }}
{{- end }}
{{- end }}
{{- end }}
