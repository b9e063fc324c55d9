package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

const (
	chartReadme, chartSchema = "README.md", "values.schema.json"
	// valuesMark is the line of the README that the table of the values replaces.
	valuesMark = "<!-- values -->\n"
)

// value is a row in the table of the values.
type value struct {
	// keys is the path of the value.
	keys []string
	// description is the comment in the default values, in one line.
	description string
}

// valuesOf returns the values of a mapping with their comments. A mapping without keys is one value: the user chooses
// its keys.
func valuesOf(mapping *yamlv3.Node, parents ...string) ([]value, error) {
	var values []value
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, content := mapping.Content[i], mapping.Content[i+1]
		keys := append(append([]string{}, parents...), key.Value)
		if len(content.Content) > 0 {
			below, err := valuesOf(content, keys...)
			if err != nil {
				return nil, err
			}
			values = append(values, below...)
			continue
		}
		description := describe(key.HeadComment)
		if description == "" {
			return nil, fmt.Errorf("the value %s of the chart has no comment", strings.Join(keys, "."))
		}
		values = append(values, value{keys, description})
	}
	return values, nil
}

// describe returns the text of a comment in one line.
func describe(comment string) string {
	var lines []string
	for line := range strings.Lines(comment) {
		lines = append(lines, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#")))
	}
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
}

// writeReadme replaces the mark in the README with the table of the values and their defaults.
func (c *Chart) writeReadme() error {
	schema := map[string]any{}
	if err := json.Unmarshal(c.files[chartSchema], &schema); err != nil {
		return fmt.Errorf("cannot read the schema of the chart: %w", err)
	}
	var table strings.Builder
	table.WriteString("| Key | Type | Default | Description |\n| --- | --- | --- | --- |\n")
	for _, v := range c.rows {
		types, err := typesOf(schema, v.keys)
		if err != nil {
			return err
		}
		fallback, err := c.defaultOf(v.keys)
		if err != nil {
			return err
		}
		fmt.Fprintf(&table, "| `%s` | %s | `%s` | %s |\n", strings.Join(v.keys, "."), types, inTable(fallback), inTable(v.description))
	}
	if bytes.Count(c.files[chartReadme], []byte(valuesMark)) != 1 {
		return fmt.Errorf("%s of the chart must have the line %q once", chartReadme, strings.TrimSpace(valuesMark))
	}
	c.files[chartReadme] = bytes.Replace(c.files[chartReadme], []byte(valuesMark), []byte(table.String()), 1)
	return nil
}

// inTable escapes the separator of columns.
func inTable(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// defaultOf returns the default of a value, in JSON.
func (c *Chart) defaultOf(keys []string) (string, error) {
	at := c.values.Content[0]
	for _, key := range keys {
		at = child(at, key)
	}
	var decoded any
	if err := at.Decode(&decoded); err != nil {
		return "", fmt.Errorf("cannot read the default of %s: %w", strings.Join(keys, "."), err)
	}
	text, err := json.Marshal(decoded)
	if err != nil {
		return "", fmt.Errorf("cannot write the default of %s: %w", strings.Join(keys, "."), err)
	}
	return string(text), nil
}

// typesOf returns the types that the schema permits for a value.
func typesOf(schema map[string]any, keys []string) (string, error) {
	definitions, _ := schema["definitions"].(map[string]any)
	at := schema
	for _, key := range keys {
		properties, _ := at["properties"].(map[string]any)
		at, _ = properties[key].(map[string]any)
		if reference, _ := at["$ref"].(string); reference != "" {
			at, _ = definitions[strings.TrimPrefix(reference, "#/definitions/")].(map[string]any)
		}
	}
	switch types := at["type"].(type) {
	case string:
		return types, nil
	case []any:
		var names []string
		for _, name := range types {
			names = append(names, fmt.Sprint(name))
		}
		return strings.Join(names, " or "), nil
	default:
		return "", fmt.Errorf("the schema of the chart has no type for the value %s", strings.Join(keys, "."))
	}
}
