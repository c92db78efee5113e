// Package reference writes the reference of the API from the CustomResourceDefinitions: every field, as the API server knows it.
package reference

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// definition is what is read of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Group string `yaml:"group"`
		Scope string `yaml:"scope"`
		Names struct {
			Kind       string   `yaml:"kind"`
			Plural     string   `yaml:"plural"`
			Singular   string   `yaml:"singular"`
			ShortNames []string `yaml:"shortNames"`
		} `yaml:"names"`
		Versions []version `yaml:"versions"`
	} `yaml:"spec"`
}

type version struct {
	Name    string `yaml:"name"`
	Served  bool   `yaml:"served"`
	Storage bool   `yaml:"storage"`
	Schema  struct {
		Root schema `yaml:"openAPIV3Schema"`
	} `yaml:"schema"`
	Columns []struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
		JSONPath    string `yaml:"jsonPath"`
		Priority    int    `yaml:"priority"`
	} `yaml:"additionalPrinterColumns"`
	Subresources struct {
		Status *struct{} `yaml:"status"`
		Scale  *struct{} `yaml:"scale"`
	} `yaml:"subresources"`
}

// schema is what is read of the schema of a field.
type schema struct {
	Description string            `yaml:"description"`
	Type        string            `yaml:"type"`
	Format      string            `yaml:"format"`
	Default     any               `yaml:"default"`
	Enum        []any             `yaml:"enum"`
	Minimum     *int64            `yaml:"minimum"`
	Maximum     *int64            `yaml:"maximum"`
	MinLength   *int64            `yaml:"minLength"`
	MaxLength   *int64            `yaml:"maxLength"`
	MinItems    *int64            `yaml:"minItems"`
	MaxItems    *int64            `yaml:"maxItems"`
	Pattern     string            `yaml:"pattern"`
	Required    []string          `yaml:"required"`
	Properties  map[string]schema `yaml:"properties"`
	Items       *schema           `yaml:"items"`
	Additional  *schema           `yaml:"additionalProperties"`
	IntOrString bool              `yaml:"x-kubernetes-int-or-string"`
	Preserve    bool              `yaml:"x-kubernetes-preserve-unknown-fields"`
	Rules       []rule            `yaml:"x-kubernetes-validations"`
}

// rule is a rule of CEL that the API server holds writes to.
type rule struct {
	Rule              string `yaml:"rule"`
	Message           string `yaml:"message"`
	MessageExpression string `yaml:"messageExpression"`
	FieldPath         string `yaml:"fieldPath"`
}

func readDefinition(file string) (*definition, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d := &definition{}
	if err := yaml.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if d.Spec.Names.Kind == "" {
		return nil, fmt.Errorf("%s is no CustomResourceDefinition", file)
	}
	return d, nil
}

// field is a field with its path below the object, as in spec.template.
type field struct {
	path     string
	required bool
	schema
}

// fields returns all fields below a schema in the order of their paths, without those that every object has.
func fields(root schema, below string) []field {
	var names []string
	for name := range root.Properties {
		if below != "" || name != "apiVersion" && name != "kind" && name != "metadata" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []field
	for _, name := range names {
		f := field{path: below + name, required: slices.Contains(root.Required, name), schema: root.Properties[name]}
		out = append(out, f)
		inner, mark := f.schema, "."
		for inner.Items != nil || inner.Additional != nil {
			if inner.Items != nil {
				inner, mark = *inner.Items, "[]"+mark
			} else {
				inner, mark = *inner.Additional, "{}"+mark
			}
		}
		out = append(out, fields(inner, f.path+mark)...)
	}
	return out
}

// kind returns what a value of a field looks like.
func (s schema) kind() string {
	switch {
	case s.IntOrString:
		return "integer or string"
	case s.Items != nil:
		return "list of " + s.Items.kind()
	case s.Additional != nil:
		return "map to " + s.Additional.kind()
	case s.Format == "date-time":
		return "time"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// limits returns what values a field may have.
func (s schema) limits() []string {
	var out []string
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		out = append(out, "One of "+strings.Join(values, ", ")+".")
	}
	for _, l := range []struct {
		at   *int64
		text string
	}{
		{s.Minimum, "At least %d."},
		{s.Maximum, "At most %d."},
		{atLeast(s.MinLength, 2), "At least %d characters."},
		{s.MaxLength, "At most %d characters."},
		{atLeast(s.MinItems, 1), "At least %d items."},
		{s.MaxItems, "At most %d items."},
	} {
		if l.at != nil {
			out = append(out, fmt.Sprintf(l.text, *l.at))
		}
	}
	if s.MinLength != nil && *s.MinLength == 1 {
		out = append(out, "Not empty.")
	}
	if s.Pattern != "" {
		out = append(out, "Matches `"+s.Pattern+"`.")
	}
	return out
}

func atLeast(n *int64, least int64) *int64 {
	if n == nil || *n < least {
		return nil
	}
	return n
}
