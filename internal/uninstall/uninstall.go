// Package uninstall finds what would stand still without managers. The charts run it before they are uninstalled, from the image and with
// an account of its own: an uninstall that fails here deletes nothing.
package uninstall

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/internal/clock"
	"github.com/seed-69ecc383/kruise/internal/command"
	"github.com/seed-69ecc383/kruise/internal/logging"
	"github.com/seed-69ecc383/kruise/internal/process"
)

const (
	// Verb is the first argument of a manager that is to look, in place of running.
	Verb = "check-uninstall"
	// userAgent is the name by which the API server's audit log knows it.
	userAgent = "kruise-uninstall/v1"
	// page is how many objects are read at a time, and named how many of those that are in use an error names.
	page, named = 500, 10
)

// Options are what the check is started with.
type Options struct {
	kubeconfig string
	log        logging.Options
}

// Bind declares the flags.
func (o *Options) Bind(fs *flag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig; empty inside a cluster")
	o.log.Bind(fs)
}

// FromEnvironment does nothing: the environment says nothing that counts here.
func (o *Options) FromEnvironment() {}

// Logging returns how the check logs.
func (o *Options) Logging() logging.Options { return o.log }

// Main runs the check as a command, and returns its exit code: 1 if something is in use.
func Main(args []string, stderr io.Writer, kinds []Kind) int {
	o := &Options{}
	return command.Main(args, stderr, o, func(ctx context.Context) error {
		config, err := process.RestConfig(o.kubeconfig, userAgent, clock.New(log.Log.WithName("clock")))
		if err != nil {
			return err
		}
		c, err := client.New(config, client.Options{})
		if err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		if err := Check(ctx, c, kinds); err != nil {
			return err
		}
		_, err = fmt.Fprintln(os.Stdout, "Nothing is in use.")
		return err
	})
}

// Check returns an error that names objects of these kinds that need the managers. Kinds that are not installed have none.
func Check(ctx context.Context, c client.Reader, kinds []Kind) error {
	var used []string
	for _, k := range kinds {
		found, err := k.used(ctx, c)
		if err != nil {
			return fmt.Errorf("reading %s.%s: %w", k.Resource, k.Group, err)
		}
		used = append(used, found...)
	}
	if len(used) == 0 {
		return nil
	}
	more := ""
	if len(used) > named {
		more = fmt.Sprintf(" and %d more", len(used)-named)
	}
	return errors.New("these objects are in use, and stand still without managers: " + strings.Join(used[:min(named, len(used))], ", ") +
		more + "; delete them or scale them to 0 first, or let them stand still by helm uninstall --no-hooks")
}

// used returns the objects of a kind that need the managers, with what for.
func (k Kind) used(ctx context.Context, c client.Reader) ([]string, error) {
	var used []string
	all := &unstructured.UnstructuredList{}
	for {
		all.SetGroupVersionKind(k.GroupVersion().WithKind(k.kind + "List"))
		err := c.List(ctx, all, client.Limit(page), client.Continue(all.GetContinue()))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range all.Items {
			o := &all.Items[i]
			if needs := k.needs(o.Object); needs != "" {
				used = append(used, fmt.Sprintf("%s %s (%s)", k.kind, strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"), needs))
			}
		}
		if all.GetContinue() == "" {
			return used, nil
		}
	}
}
