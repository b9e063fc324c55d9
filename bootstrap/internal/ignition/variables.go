package ignition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// variable matches fewer texts than os.Expand: $1, $$ and braces around other text are the user's own text.
var variable = regexp.MustCompile(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)

// Variables returns the names of the variables ($NAME or ${NAME}) in the texts, sorted.
func Variables(texts ...string) []string {
	var names []string
	for _, text := range texts {
		for _, match := range variable.FindAllStringSubmatch(text, -1) {
			names = append(names, match[1]+match[2])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Resolve replaces the variables in text by their values. It drops double quotes, which manifests for a shell
// put around variables.
func Resolve(text string, values map[string]string) (string, error) {
	for _, name := range Variables(text) {
		if _, known := values[name]; !known {
			return "", fmt.Errorf("variable $%s has no value for this host", name)
		}
	}
	resolved := variable.ReplaceAllStringFunc(text, func(reference string) string {
		return values[strings.Trim(reference, "${}")]
	})
	return strings.ReplaceAll(resolved, `"`, ""), nil
}

// MetadataVariables returns the entries of a host's Metal3 metadata as variables: METADATA_ and the key in
// capitals, with _ for -.
func MetadataVariables(metadata map[string]string) map[string]string {
	values := map[string]string{}
	for key, value := range metadata {
		values["METADATA_"+strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(key))] = value
	}
	return values
}
