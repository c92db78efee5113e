package access

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
)

// Target is an object that a user has named.
type Target struct{ Type, Name string }

// Named reads arguments: TYPE/NAME ..., or TYPE NAME ..., or NAME ... where there is a default type. Without a name the type alone is
// returned, for commands that take a selector.
func Named(args []string, defaultType string) ([]Target, error) {
	if len(args) == 0 {
		return nil, errors.New("no object is named: give TYPE/NAME, such as cloneset/web")
	}
	if strings.Contains(args[0], "/") {
		return eachNamed(args)
	}
	if defaultType != "" && (len(args) == 1 || !isTypeFor(args[0], defaultType)) {
		args = append([]string{defaultType}, args...)
	}
	var out []Target
	for _, name := range args[1:] {
		if strings.Contains(name, "/") {
			return nil, fmt.Errorf("%s is TYPE/NAME after a TYPE: give either TYPE NAME or TYPE/NAME", name)
		}
		out = append(out, Target{args[0], name})
	}
	if len(out) == 0 {
		out = append(out, Target{Type: args[0]})
	}
	return out, nil
}

func eachNamed(args []string) ([]Target, error) {
	var out []Target
	for _, arg := range args {
		kind, name, slash := strings.Cut(arg, "/")
		if !slash || kind == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%q is not TYPE/NAME, such as cloneset/web", arg)
		}
		out = append(out, Target{kind, name})
	}
	return out, nil
}

// isTypeFor reports whether an argument is the default type itself, in one of its spellings, and not a name.
func isTypeFor(arg, defaultType string) bool {
	short, _, _ := strings.Cut(strings.ToLower(arg), ".")
	return strings.TrimSuffix(short, "s") == defaultType || short == defaultType || defaultType == "cloneset" && short == "clone"
}

// Kind returns the kind that a user means by a type: its singular, plural or short name, with a version and a group if need be.
func (c *Cluster) Kind(named string) (kinds.Kind, error) {
	if _, err := c.Client(); err != nil {
		return kinds.Kind{}, err
	}
	full, resource := schema.ParseResourceArg(strings.ToLower(named))
	var gvk schema.GroupVersionKind
	err := error(&meta.NoResourceMatchError{})
	if full != nil {
		gvk, err = c.mapper.KindFor(*full)
	}
	if meta.IsNoMatchError(err) {
		gvk, err = c.mapper.KindFor(resource.WithVersion(""))
	}
	return meant(gvk, resource, named, err)
}

// meant returns the kind of what the API server understands by a type. Others may have a kind of the same name, such as Argo's Rollout: of
// these, the one is meant that this program knows.
func meant(gvk schema.GroupVersionKind, resource schema.GroupResource, named string, err error) (kinds.Kind, error) {
	kind, known := byName(resource)
	switch {
	case meta.IsAmbiguousError(err) && known:
		return kind, nil
	case meta.IsNoMatchError(err) && known:
		return kinds.Kind{}, &NotInstalled{Kind: kind}
	case meta.IsNoMatchError(err):
		return kinds.Kind{}, fmt.Errorf("the cluster has no resource %q: kubectl api-resources lists those that it has", named)
	case err != nil:
		return kinds.Kind{}, fmt.Errorf("asking the API server for %q: %w", named, err)
	}
	found, err := kinds.Of(gvk.GroupKind())
	if err != nil && known {
		return kind, nil
	}
	return found, err
}

// byName returns the kind of Kruise whose singular or plural name is meant, for a cluster that does not have it.
func byName(resource schema.GroupResource) (kinds.Kind, bool) {
	for _, k := range kinds.All() {
		if k.IsKruise() && (resource.Group == "" || resource.Group == k.Group) &&
			(resource.Resource == k.Resource || resource.Resource == strings.ToLower(k.GroupVersionKind.Kind)) {
			return k, true
		}
	}
	return kinds.Kind{}, false
}

// Find reads the objects that arguments name; with a selector, those of a type that it selects.
func (c *Cluster) Find(ctx context.Context, args []string, defaultType, selector string) ([]Object, error) {
	targets, err := Named(args, defaultType)
	if err != nil {
		return nil, err
	}
	namespace, err := c.Namespace()
	if err != nil {
		return nil, err
	}
	if selector != "" {
		return c.selected(ctx, targets, namespace, selector)
	}
	var out []Object
	for _, t := range targets {
		if t.Name == "" {
			return nil, fmt.Errorf("%q is a type without a name: give %s/NAME", t.Type, t.Type)
		}
		kind, err := c.Kind(t.Type)
		if err != nil {
			return nil, err
		}
		o, err := c.Get(ctx, kind, namespace, t.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

func (c *Cluster) selected(ctx context.Context, targets []Target, namespace, selector string) ([]Object, error) {
	if len(targets) != 1 || targets[0].Name != "" {
		return nil, errors.New("a selector and names are given: give only one of them")
	}
	kind, err := c.Kind(targets[0].Type)
	if err != nil {
		return nil, err
	}
	parsed, err := labels.Parse(selector)
	if err != nil {
		return nil, fmt.Errorf("selector %q: %w", selector, err)
	}
	options := []client.ListOption{client.MatchingLabelsSelector{Selector: parsed}}
	if !kind.Cluster {
		options = append(options, client.InNamespace(namespace))
	}
	found, err := c.List(ctx, kind, options...)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no %s has labels %s", kind.Resource, selector)
	}
	return found, err
}

// One reads the only object that arguments name.
func (c *Cluster) One(ctx context.Context, args []string, defaultType string) (Object, error) {
	found, err := c.Find(ctx, args, defaultType, "")
	if err != nil {
		return Object{}, err
	}
	if len(found) != 1 {
		return Object{}, fmt.Errorf("%d objects are named: name one", len(found))
	}
	return found[0], nil
}
