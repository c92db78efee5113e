package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value is one value of a chart: its row in the documentation, its line in values.yaml and its part of values.schema.json.
type value struct {
	// path is its name, such as manager.image.tag.
	path string
	// standard is what it is unless somebody says otherwise, as YAML.
	standard string
	// schema is what it may be, as JSON schema.
	schema map[string]any
	// what says in a sentence what it does.
	what string
}

func truth(path string, standard bool, what string) value {
	return value{path, fmt.Sprint(standard), map[string]any{"type": "boolean"}, what}
}

// number is an integer within bounds.
func number(path string, standard, least, most int, what string) value {
	return value{path, fmt.Sprint(standard), map[string]any{"type": "integer", "minimum": least, "maximum": most}, what}
}

func port(path string, standard int, what string) value {
	return number(path, standard, 1, 65535, what)
}

// level is a number that value files of the older charts have as text.
func level(path string) value {
	schema := map[string]any{"type": []string{"integer", "string"}, "pattern": "^[0-9]+$", "minimum": 0}
	return value{path, "0", schema, "Verbosity of the log: 0 logs what changes, 1 also why nothing does."}
}

func text(path, standard, what string) value {
	return value{path, quoted(standard), map[string]any{"type": "string"}, what}
}

// shaped is text that matches a pattern.
func shaped(path, standard, pattern, what string) value {
	return value{path, quoted(standard), map[string]any{"type": "string", "pattern": pattern}, what}
}

func choice(path, standard string, all []string, what string) value {
	return value{path, quoted(standard), map[string]any{"enum": all}, what}
}

// object of Kubernetes, which the API server judges.
func mapping(path, standard, what string) value {
	return value{path, standard, map[string]any{"type": "object"}, what}
}

// words are annotations, labels and the like.
func words(path, what string) value {
	return value{path, "{}", map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}, what}
}

// list holds items of one type.
func list(path, standard, items, what string) value {
	return value{path, standard, map[string]any{"type": "array", "items": map[string]any{"type": items}}, what}
}

func quoted(text string) string {
	if text == "" || strings.ContainsAny(text, ":*{}%@") {
		return fmt.Sprintf("%q", text)
	}
	return text
}

// standards returns values.yaml.
func standards(head string, all []value) (string, error) {
	root := &yaml.Node{Kind: yaml.MappingNode, HeadComment: head}
	for _, v := range all {
		into := root
		keys := strings.Split(v.path, ".")
		for _, key := range keys[:len(keys)-1] {
			into = entry(into, key)
		}
		var standard yaml.Node
		if err := yaml.Unmarshal([]byte(v.standard), &standard); err != nil {
			return "", fmt.Errorf("reading what %s is: %w", v.path, err)
		}
		name := &yaml.Node{Kind: yaml.ScalarNode, Value: keys[len(keys)-1], HeadComment: "# " + v.what}
		into.Content = append(into.Content, name, standard.Content[0])
	}
	return encode(root)
}

// entry returns the mapping below a key, which it adds if it is missing.
func entry(node *yaml.Node, key string) *yaml.Node {
	if i := indexOf(node, key); i >= 0 {
		return node.Content[i]
	}
	below := &yaml.Node{Kind: yaml.MappingNode}
	node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, below)
	return below
}

// schema returns values.schema.json. It takes no value that the chart does not have, but what Helm itself gives to charts within others.
func schema(title string, all []value) ([]byte, error) {
	root := closed()
	root["$schema"], root["title"] = "http://json-schema.org/draft-07/schema#", title
	root["properties"].(map[string]any)["global"] = map[string]any{"type": "object"}
	for _, v := range all {
		into := root["properties"].(map[string]any)
		keys := strings.Split(v.path, ".")
		for _, key := range keys[:len(keys)-1] {
			below, found := into[key].(map[string]any)
			if !found {
				below = closed()
				into[key] = below
			}
			into = below["properties"].(map[string]any)
		}
		own := map[string]any{"description": v.what}
		for key, is := range v.schema {
			own[key] = is
		}
		into[keys[len(keys)-1]] = own
	}
	encoded, err := json.MarshalIndent(root, "", "  ")
	return append(encoded, '\n'), err
}

// closed is the schema of an object that has what is named and nothing else.
func closed() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{}}
}

// table returns the values for the documentation.
func table(all []value) string {
	var out strings.Builder
	out.WriteString("| value | default | |\n| --- | --- | --- |\n")
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b value) int { return strings.Compare(a.path, b.path) })
	for _, v := range sorted {
		var standard yaml.Node
		shown := v.standard
		if err := yaml.Unmarshal([]byte(v.standard), &standard); err == nil && len(shown) > 60 {
			shown = "see values.yaml"
		} else {
			shown = "`" + shown + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", v.path, shown, v.what)
	}
	return out.String()
}
