package chart

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// watchedNamespace is the variable of the components for managers that watch one namespace.
const watchedNamespace = "${WATCHED_NAMESPACE}"

// Marks around an expression of Helm until the objects are text. Text of the objects that resembles an
// expression is escaped.
const (
	begin, end = "⟦", "⟧"
	// blank stands for a space in an expression, where the YAML encoder would break a long line.
	blank = "␣"
	// A field with optional is left out when its value is empty. A field with given is left out when its value does
	// not exist: 0 is a value. The expression of a field with lines gives several lines. The expression of an item
	// with further gives additional items of the list.
	optional, given, lines, further = "optional:", "given:", "lines:", "further:"
)

// expression returns the value of a field or an item that consists of an expression of Helm.
func expression(form, text string) string {
	return begin + form + strings.ReplaceAll(text, " ", blank) + end
}

var (
	optionalField = regexp.MustCompile(`(?m)^( *)([A-Za-z]+): ` + begin + optional + `(.+)` + end + `$`)
	givenField    = regexp.MustCompile(`(?m)^( *)([A-Za-z]+): ` + begin + given + `(.+)` + end + `$`)
	linesField    = regexp.MustCompile(`(?m)^( *(?:- )?)([A-Za-z]+): ` + begin + lines + `(.+)` + end + `$`)
	furtherItems  = regexp.MustCompile(`(?m)^( *)- ` + begin + further + `(.+)` + end + `$`)
	watchedItem   = regexp.MustCompile(`(?m)^( *)- ` + regexp.QuoteMeta(watchedNamespace) + `$`)
	unsetVariable = regexp.MustCompile(`\$\{[A-Z_]+`)
)

// template returns the text of the template of an object.
func (p Provider) template(o unstructured.Unstructured) (string, error) {
	object, err := yaml.Marshal(o.Object)
	if err != nil {
		return "", fmt.Errorf("cannot write %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	text := strings.ReplaceAll(string(object), "{{", `{{ "{{" }}`)
	text = strings.ReplaceAll(text, p.Namespace, "{{ .Release.Namespace }}")
	text = watchedItem.ReplaceAllString(text, "$1{{- range .Values."+p.Values+".inPlaceUpdates.namespaces }}\n$1- {{ . }}\n$1{{- end }}")
	text = strings.ReplaceAll(text, watchedNamespace, "{{ .Values.watchNamespace }}")
	text = optionalField.ReplaceAllString(text, "$1{{- with $3 }}\n$1$2: {{ toJson . }}\n$1{{- end }}")
	text = givenField.ReplaceAllString(text, `$1{{- if not (kindIs "invalid" $3) }}`+"\n$1$2: {{ toJson $3 }}\n$1{{- end }}")
	text = linesField.ReplaceAllStringFunc(text, indented(linesField, "$1$2: {{- $3 | trim | nindent INDENT }}"))
	text = furtherItems.ReplaceAllStringFunc(text, indented(furtherItems, "$1{{- with $2 }}\n{{ toYaml . | indent INDENT }}\n$1{{- end }}"))
	text = strings.NewReplacer(begin, "{{ ", end, " }}", blank, " ").Replace(text)
	if variable := unsetVariable.FindString(text); variable != "" {
		return "", fmt.Errorf("%s %s has the variable %s}, but the chart has no value for it", o.GetKind(), o.GetName(), variable)
	}
	return text, nil
}

// indented returns a replacement function for a regular expression whose first group is the indentation of the
// line. INDENT stands for the width of that indentation.
func indented(expression *regexp.Regexp, replacement string) func(string) string {
	return func(line string) string {
		indent := strconv.Itoa(len(expression.FindStringSubmatch(line)[1]))
		return expression.ReplaceAllString(line, strings.ReplaceAll(replacement, "INDENT", indent))
	}
}
