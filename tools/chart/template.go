package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// template turns objects of the manifests into templates of a chart. What is to be filled in when the chart is rendered is put into the
// YAML as marks, which are replaced when the text is written. An edit that finds nothing to edit is an error: the manifests have changed,
// and the chart has to follow.
type template struct {
	marks []string
	errs  []error
}

var (
	lineMark   = regexp.MustCompile(`^( *)(- )?template-(\d+)-line(: null)?$`)
	inlineMark = regexp.MustCompile(`template-(\d+)-inline`)
	indentMark = regexp.MustCompile(`@(\d+)`)
)

func (t *template) mark(text, kind string) string {
	t.marks = append(t.marks, text)
	return fmt.Sprintf("template-%d-%s", len(t.marks)-1, kind)
}

func (t *template) fail(o object, format string, args ...any) {
	t.errs = append(t.errs, fmt.Errorf("%s: %w", o, fmt.Errorf(format, args...)))
}

// set fills in the value at a path.
func (t *template) set(o object, path, text string) {
	parent, i := t.find(o, path)
	if parent == nil {
		return
	}
	parent.Content[i] = &yaml.Node{Kind: yaml.ScalarNode, Value: t.mark(text, "inline")}
}

// add puts lines behind what a mapping or a sequence has. In the lines @2 stands for their own indentation and two more.
func (t *template) add(o object, path, text string) {
	parent, i := t.find(o, path)
	if parent == nil {
		return
	}
	t.insert(parent.Content[i], len(parent.Content[i].Content), text)
}

// wrap puts lines before and behind the entry of a mapping, or the item of a sequence, if there are any.
func (t *template) wrap(o object, path, before, behind string) {
	parent, i := t.find(o, path)
	if parent == nil {
		return
	}
	first := i
	if parent.Kind == yaml.MappingNode {
		first-- // its key
	}
	if behind != "" {
		t.insert(parent, i+1, behind)
	}
	if before != "" {
		t.insert(parent, first, before)
	}
}

// replace puts lines in the place of the entry of a mapping, or the item of a sequence.
func (t *template) replace(o object, path, text string) {
	parent, i := t.find(o, path)
	if parent == nil {
		return
	}
	first := i
	if parent.Kind == yaml.MappingNode {
		first--
	}
	parent.Content = slices.Delete(parent.Content, first, i+1)
	t.insert(parent, first, text)
}

func (t *template) insert(into *yaml.Node, at int, text string) {
	line := &yaml.Node{Kind: yaml.ScalarNode, Value: t.mark(text, "line")}
	if into.Kind == yaml.SequenceNode {
		into.Content = slices.Insert(into.Content, at, line)
		return
	}
	into.Content = slices.Insert(into.Content, at, line, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"})
}

// find returns the node that holds what is at a path, and which of its content it is. Paths are keys and indices, joined by slashes.
func (t *template) find(o object, path string) (*yaml.Node, int) {
	node := &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{o.node}}
	i := 0
	for step := range strings.SplitSeq(path, "/") {
		if step == "" { // the object itself
			break
		}
		node = node.Content[i]
		if i = indexOf(node, step); i < 0 {
			t.fail(o, "there is no %s at %s", step, path)
			return nil, 0
		}
	}
	return node, i
}

func indexOf(node *yaml.Node, step string) int {
	if node.Kind == yaml.SequenceNode {
		i, err := strconv.Atoi(step)
		if err != nil || i >= len(node.Content) {
			return -1
		}
		return i
	}
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == step {
			return i + 1
		}
	}
	return -1
}

// everywhere fills in text wherever a value is exactly this one, and returns how often.
func (t *template) everywhere(node *yaml.Node, value, text string) int {
	if node.Kind == yaml.ScalarNode && node.Value == value {
		*node = yaml.Node{Kind: yaml.ScalarNode, Value: t.mark(text, "inline")}
		return 1
	}
	count := 0
	for _, below := range node.Content {
		count += t.everywhere(below, value, text)
	}
	return count
}

// text returns an object as a template.
func (t *template) text(o object) (string, error) {
	encoded, err := encode(o.node)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("---\n")
	for line := range strings.Lines(strings.ReplaceAll(encoded, "{{", `{{ "{{" }}`)) {
		line = strings.TrimSuffix(line, "\n")
		if found := lineMark.FindStringSubmatch(line); found != nil {
			isFirstKey := found[2] != "" && found[4] != "" // of a mapping that is the item of a sequence
			t.writeLines(&out, t.marked(found[3]), len(found[1]), isFirstKey)
			continue
		}
		out.WriteString(inlineMark.ReplaceAllStringFunc(line, func(mark string) string {
			return t.marked(inlineMark.FindStringSubmatch(mark)[1])
		}) + "\n")
	}
	return out.String(), errors.Join(t.errs...)
}

func (t *template) marked(number string) string {
	i, err := strconv.Atoi(number)
	if err != nil || i >= len(t.marks) {
		t.errs = append(t.errs, fmt.Errorf("there is no mark %s", number))
		return ""
	}
	return t.marks[i]
}

func (t *template) writeLines(out *strings.Builder, text string, indent int, isFirstKey bool) {
	before := strings.Repeat(" ", indent)
	if isFirstKey {
		if strings.HasPrefix(text, "{{") {
			t.errs = append(t.errs, fmt.Errorf("%q begins an item of a sequence, which only a key can", text))
		}
		before += "- "
		indent += 2
	}
	for line := range strings.Lines(text) {
		line = indentMark.ReplaceAllStringFunc(line, func(mark string) string {
			more, _ := strconv.Atoi(mark[1:]) // digits, by the pattern
			return strconv.Itoa(indent + more)
		})
		out.WriteString(before + strings.TrimSuffix(line, "\n") + "\n")
		before = strings.Repeat(" ", indent)
	}
}
