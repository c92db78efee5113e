// Package access connects the command line to a cluster: the flags of kubectl, objects by the names that users give them, reads, and writes
// over the version that was read.
//
// Objects of Kruise are given to the commands in their hub version. Where the API server has only an older one, as that of an OpenKruise of
// former days, they are converted both ways.
package access

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
	"github.com/seed-69ecc383/kruise/internal/convert"
)

// FieldManager is the name under which the API server notes what the commands write.
const FieldManager = "kubectl-kruise"

// older is the version of Kruise's kinds before the hub.
const older = "v1alpha1"

// Cluster is the connection to a cluster. It connects with the first request.
type Cluster struct {
	flags    *genericclioptions.ConfigFlags
	warnings io.Writer

	once   sync.Once
	err    error
	client client.WithWatch
	mapper meta.RESTMapper
}

// New returns a connection; warnings of the API server go to a writer.
func New(warnings io.Writer) *Cluster {
	c := &Cluster{flags: genericclioptions.NewConfigFlags(true), warnings: warnings}
	c.flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.QPS = -1                                                      // the API server sets the pace
		config.UserAgent = FieldManager + "/" + v1beta1.GroupVersion.Version // audit logs are searched by the name before the slash
		config.WarningHandler = rest.NewWarningWriter(c.warnings, rest.WarningWriterOptions{Deduplicate: true})
		return config
	}
	return c
}

// AddFlags declares the flags of kubectl that say which cluster is meant, and as whom.
func (c *Cluster) AddFlags(flags *pflag.FlagSet) { c.flags.AddFlags(flags) }

// Namespace returns the namespace that is meant: that of the flag, or of the context of the kubeconfig.
func (c *Cluster) Namespace() (string, error) {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("finding the namespace: %w", err)
	}
	return namespace, nil
}

// Client returns a client that reads and writes without a cache.
func (c *Cluster) Client() (client.WithWatch, error) {
	c.once.Do(func() { c.err = c.connect() })
	return c.client, c.err
}

func (c *Cluster) connect() error {
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	if c.mapper, err = c.flags.ToRESTMapper(); err != nil {
		return fmt.Errorf("asking the API server for its kinds: %w", err)
	}
	s, err := Scheme()
	if err != nil {
		return err
	}
	if c.client, err = client.NewWithWatch(config, client.Options{Scheme: s, Mapper: c.mapper}); err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	return nil
}

// Scheme returns the kinds of Kubernetes and the hub versions of those of Kruise.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, v1beta1.AddToScheme, policyv1beta1.AddToScheme, rolloutsv1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Object is an object in the hub version of its kind.
type Object struct {
	*unstructured.Unstructured
	Kind kinds.Kind
	// served is the version that it is read and written in.
	served schema.GroupVersion
}

// String names the object as events and plans do.
func (o Object) String() string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return o.Kind.GroupVersionKind.Kind + " " + name
}

// Arg names the object as an argument of a command.
func (o Object) Arg() string { return o.Kind.Arg(o.GetName()) }

// Into decodes the object into its type.
func (o Object) Into(into client.Object) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		return fmt.Errorf("reading %s: %w", o, err)
	}
	return nil
}

// Get reads one object.
func (c *Cluster) Get(ctx context.Context, kind kinds.Kind, namespace, name string) (Object, error) {
	served, err := c.served(kind)
	if err != nil {
		return Object{}, err
	}
	read := &unstructured.Unstructured{}
	read.SetGroupVersionKind(served.WithKind(kind.GroupVersionKind.Kind))
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if kind.Cluster {
		key.Namespace = ""
	}
	if err := c.client.Get(ctx, key, read); err != nil {
		return Object{}, fmt.Errorf("reading %s: %w", kind.Arg(name), err)
	}
	return toHub(kind, served, read)
}

// Again reads an object once more.
func (c *Cluster) Again(ctx context.Context, o Object) (Object, error) {
	return c.Get(ctx, o.Kind, o.GetNamespace(), o.GetName())
}

// List reads all objects of a kind; in all namespaces where the namespace is empty.
func (c *Cluster) List(ctx context.Context, kind kinds.Kind, options ...client.ListOption) ([]Object, error) {
	served, err := c.served(kind)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(served.WithKind(kind.GroupVersionKind.Kind + "List"))
	if err := c.client.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Resource, err)
	}
	out := make([]Object, 0, len(list.Items))
	for i := range list.Items {
		o, err := toHub(kind, served, &list.Items[i])
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// pageSize is how many objects are read at a time.
const pageSize = 500

// Each reads all objects of a kind in pages, in all namespaces where the namespace is empty, and calls do with each of them.
func (c *Cluster) Each(ctx context.Context, kind kinds.Kind, namespace string, do func(Object) error) error {
	served, err := c.served(kind)
	if err != nil {
		return err
	}
	if kind.Cluster {
		namespace = ""
	}
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(served.WithKind(kind.GroupVersionKind.Kind + "List"))
		if err := c.client.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next)); err != nil {
			return fmt.Errorf("listing %s: %w", kind.Resource, err)
		}
		for i := range list.Items {
			o, err := toHub(kind, served, &list.Items[i])
			if err != nil {
				return err
			}
			if err := do(o); err != nil {
				return err
			}
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// Names returns the names of all objects of a kind, in the namespace that is meant.
func (c *Cluster) Names(ctx context.Context, kind kinds.Kind) ([]string, error) {
	namespace, err := c.Namespace()
	if err != nil {
		return nil, err
	}
	served, err := c.served(kind)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(served.WithKind(kind.GroupVersionKind.Kind + "List"))
	var options []client.ListOption
	if !kind.Cluster {
		options = append(options, client.InNamespace(namespace))
	}
	if err := c.client.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Resource, err)
	}
	out := make([]string, len(list.Items))
	for i := range list.Items {
		out[i] = list.Items[i].Name
	}
	return out, nil
}

// served returns the version that the API server has of a kind: the hub, or else the one before.
func (c *Cluster) served(kind kinds.Kind) (schema.GroupVersion, error) {
	if _, err := c.Client(); err != nil {
		return schema.GroupVersion{}, err
	}
	versions := []string{kind.Version}
	if kind.IsKruise() {
		versions = append(versions, older)
	}
	var err error
	for _, version := range versions {
		var mapping *meta.RESTMapping
		if mapping, err = c.mapper.RESTMapping(kind.GroupKind(), version); err == nil {
			return mapping.GroupVersionKind.GroupVersion(), nil
		}
		if !meta.IsNoMatchError(err) {
			return schema.GroupVersion{}, fmt.Errorf("asking the API server for its kinds: %w", err)
		}
	}
	return schema.GroupVersion{}, &NotInstalled{Kind: kind}
}

// NotInstalled is the error for a kind that the API server does not have.
type NotInstalled struct{ Kind kinds.Kind }

func (n *NotInstalled) Error() string {
	kind := n.Kind.GroupVersionKind.Kind
	return fmt.Sprintf("the cluster has no kind %s (%s): install Kruise's CustomResourceDefinitions", kind, n.Kind.Group)
}

func toHub(kind kinds.Kind, served schema.GroupVersion, read *unstructured.Unstructured) (Object, error) {
	o := Object{Unstructured: read, Kind: kind, served: served}
	if served != kind.GroupVersion() {
		converted, err := convert.Object(read, kind.GroupVersion().String())
		if err != nil {
			return Object{}, fmt.Errorf("reading %s: %w", o, err)
		}
		o.Unstructured = converted
	}
	return o, nil
}

// Hub returns an object of a file in the hub version of its kind.
func Hub(kind kinds.Kind, read *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	o, err := toHub(kind, read.GroupVersionKind().GroupVersion(), read)
	return o.Unstructured, err
}
