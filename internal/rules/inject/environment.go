package inject

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// environment returns a sidecar's variables: its own, the mark of an injected container, and those taken from the Pod whose names are free.
// Where one of its own refers to one taken from the Pod, as $(NAME), these come first, because a variable can refer only to earlier ones.
func environment(own, taken []corev1.EnvVar) []corev1.EnvVar {
	mark := corev1.EnvVar{Name: keys.SidecarInjectedEnv, Value: "true"}
	names := sets.New(mark.Name)
	for _, env := range own {
		names.Insert(env.Name)
	}
	var free []corev1.EnvVar
	for _, env := range taken {
		if !names.Has(env.Name) {
			names.Insert(env.Name)
			free = append(free, env)
		}
	}
	own = slices.DeleteFunc(own, func(env corev1.EnvVar) bool { return env.Name == mark.Name })
	if refersTo(own, free) {
		return slices.Concat(free, own, []corev1.EnvVar{mark})
	}
	return slices.Concat(own, []corev1.EnvVar{mark}, free)
}

func refersTo(own, others []corev1.EnvVar) bool {
	for _, env := range own {
		for _, name := range references(env.Value) {
			if slices.ContainsFunc(others, func(other corev1.EnvVar) bool { return other.Name == name }) {
				return true
			}
		}
	}
	return false
}

// reference matches $(NAME), and $$, which stands for a mere $.
var reference = regexp.MustCompile(`\$\$|\$\(([^()]+)\)`)

// references returns the names that a text refers to as $(NAME).
func references(text string) []string {
	if !strings.Contains(text, "$(") {
		return nil
	}
	var names []string
	for _, match := range reference.FindAllStringSubmatch(text, -1) {
		if match[1] != "" {
			names = append(names, match[1])
		}
	}
	return names
}

// transferred returns the variables that a sidecar copies from the Pod's own containers. Names and containers that are not there are passed
// over.
func (i *injection) transferred(from *v1beta1.SidecarContainer) ([]corev1.EnvVar, error) {
	var taken []corev1.EnvVar
	for _, transfer := range from.TransferEnv {
		source, err := i.sourceOf(transfer)
		if err != nil {
			return nil, err
		}
		if source == nil {
			continue
		}
		names := sets.New(transfer.EnvNames...)
		if transfer.EnvName != "" {
			names.Insert(transfer.EnvName)
		}
		for _, name := range sets.List(names) {
			taken = append(taken, variable(source, name)...)
		}
	}
	return taken, nil
}

// variable returns a variable of a container; the last one of that name, which is the one that counts.
func variable(c *corev1.Container, name string) []corev1.EnvVar {
	for j := range slices.Backward(c.Env) {
		if c.Env[j].Name == name {
			return []corev1.EnvVar{*c.Env[j].DeepCopy()}
		}
	}
	return nil
}

// sourceOf returns the container of the Pod that a transfer copies from, or nil.
func (i *injection) sourceOf(transfer v1beta1.TransferEnvVar) (*corev1.Container, error) {
	name := transfer.SourceContainerName
	if from := transfer.SourceContainerNameFrom; from != nil && from.FieldRef != nil {
		var err error
		if name, err = i.field(from.FieldRef.FieldPath); err != nil {
			return nil, err
		}
	}
	for _, c := range i.own {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, nil
}

// fieldPath matches a label or an annotation by its key.
var fieldPath = regexp.MustCompile(`^metadata\.(labels|annotations)\['([^']+)'\]$`)

// field returns the value of a label or annotation of the Pod; nothing where it has none.
func (i *injection) field(path string) (string, error) {
	match := fieldPath.FindStringSubmatch(path)
	if match == nil {
		return "", fmt.Errorf("sourceContainerNameFrom: %s is not metadata.labels['<key>'] or metadata.annotations['<key>']", path)
	}
	if match[1] == "labels" {
		return i.pod.Labels[match[2]], nil
	}
	return i.pod.Annotations[match[2]], nil
}
