package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
)

// wanted returns an object as the API server would store it with the changes of a file and of flags.
func (p *program) wanted(ctx context.Context, o access.Object, file string, set []string) (access.Object, error) {
	if file == "" && len(set) == 0 {
		return o, nil
	}
	var from *unstructured.Unstructured
	if file != "" {
		read, err := p.fromFile(file, o)
		if err != nil {
			return o, err
		}
		from = read
	}
	changes, err := parseChanges(set)
	if err != nil {
		return o, err
	}
	after, _, err := p.cluster.Edit(ctx, o, true, func(u *unstructured.Unstructured) error {
		if from != nil {
			spec, _, _ := unstructured.NestedMap(from.Object, "spec")
			if replicas, has, _ := unstructured.NestedFieldCopy(u.Object, "spec", "replicas"); has && spec["replicas"] == nil {
				spec["replicas"] = replicas // an autoscaler may have set it
			}
			u.Object["spec"] = spec
		}
		return changes.apply(o.Kind, u)
	})
	return after, err
}

// fromFile reads the object of a file that has the kind, the name and the namespace of one, in either version. An object of a file need
// not say its namespace.
func (p *program) fromFile(file string, o access.Object) (*unstructured.Unstructured, error) {
	in := p.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	documents := yaml.NewYAMLOrJSONDecoder(in, 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := documents.Decode(&u.Object); err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("give the file that has it, or -n for another namespace")
			}
			return nil, fmt.Errorf("%s holds no %s: %w", file, o, err)
		}
		inNamespace := u.GetNamespace() == "" || u.GetNamespace() == o.GetNamespace()
		if u.GroupVersionKind().GroupKind() == o.Kind.GroupKind() && u.GetName() == o.GetName() && inNamespace {
			return access.Hub(o.Kind, u)
		}
	}
}

// changes are those of --set.
type changes struct {
	images map[string]string
	fields map[string]string
}

func parseChanges(set []string) (changes, error) {
	out := changes{images: map[string]string{}, fields: map[string]string{}}
	for _, one := range set {
		field, value, is := strings.Cut(one, "=")
		if !is || value == "" {
			return out, fmt.Errorf("--set %s: give FIELD=VALUE, such as partition=30%%", one)
		}
		switch field {
		case "image":
			container, image, is := strings.Cut(value, "=")
			if !is || container == "" || image == "" {
				return out, fmt.Errorf("--set %s: give image=CONTAINER=IMAGE, such as image=app=web:v2", one)
			}
			out.images[container] = image
		case "replicas", "partition", "maxUnavailable", "paused":
			out.fields[field] = value
		default:
			return out, fmt.Errorf("--set %s: there is no field %q, use image, replicas, partition, maxUnavailable or paused", one, field)
		}
	}
	return out, nil
}

// apply makes the changes. What the values mean is left to the API server, but for whether they are numbers.
func (c changes) apply(kind kinds.Kind, u *unstructured.Unstructured) error {
	if len(c.images) > 0 {
		if err := kind.SetImages(u, c.images); err != nil {
			return err
		}
	}
	for field, text := range c.fields {
		var value any = text
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			value = n
		}
		path := []string{"spec", "updateStrategy", "rollingUpdate", field}
		switch field {
		case "replicas":
			path = []string{"spec", field}
		case "paused":
			if kind.Paused == nil {
				return errors.New("--set paused: this kind can't be paused")
			}
			is, err := strconv.ParseBool(text)
			if err != nil {
				return fmt.Errorf("--set paused=%s: give true or false", text)
			}
			path, value = kind.Paused, is
		}
		if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
			return fmt.Errorf("--set %s: %w", field, err)
		}
	}
	return nil
}
