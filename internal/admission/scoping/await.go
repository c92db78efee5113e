package scoping

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/admission/pods"
	"github.com/seed-69ecc383/kruise/internal/rules/inject"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

const (
	// glance is the pause between looks at whether a SidecarSet is known by now, and mostAwaited the longest wait for it.
	glance, mostAwaited = 5 * time.Millisecond, 3 * time.Second
)

// AwaitOptions is what Await needs.
type AwaitOptions struct {
	// Configuration is the name of the webhook configuration, which Cached follows and few others, if any.
	Configuration string
	Cached, Live  client.Reader
	// Known returns the SidecarSets that are known here.
	Known func() (*inject.Candidates, error)
}

// Await returns a step that holds a Pod back until the SidecarSets that were stored before it are known here. It comes before the step that
// injects. A Pod may follow its SidecarSet within a millisecond, and then be faster than the news of it; the note of it has been around for longer.
//
// It costs nothing but a look at the notes: the API server is asked only for a SidecarSet that a note speaks of, that selects the Pod, and that
// is not known yet.
func Await(o AwaitOptions) pods.Step {
	return pods.Step{Name: "await", Run: o.run}
}

func (o AwaitOptions) run(ctx context.Context, s *pods.Subject) error {
	text, err := o.pending(ctx)
	if err != nil {
		return fmt.Errorf("reading what SidecarSets are on their way: %w", err)
	}
	notes, err := readNotes(text)
	if err != nil {
		return nil //nolint:nilerr // somebody else wrote it; the leader removes it
	}
	for _, n := range notes {
		selected, err := sidecar.Select(n.Selector, n.NamespaceSelector)
		if err != nil || !selected.MatchesLabels(s.Pod().Labels) {
			continue
		}
		if err := o.await(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// pending returns the notes of the configuration; nothing where it is missing. It holds all webhooks of the product, and is not copied for every Pod.
func (o AwaitOptions) pending(ctx context.Context) (string, error) {
	var all admissionv1.MutatingWebhookConfigurationList
	if err := o.Cached.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return "", err
	}
	for i := range all.Items {
		if all.Items[i].Name == o.Configuration {
			return all.Items[i].Annotations[keys.PodScopePending], nil
		}
	}
	return "", nil
}

// await returns when the SidecarSet of a note is known if it is stored.
func (o AwaitOptions) await(ctx context.Context, n note) error {
	known, err := o.knows(n)
	if known || err != nil {
		return err
	}
	stored := &v1beta1.SidecarSet{}
	if err := o.Live.Get(ctx, client.ObjectKey{Name: n.Name}, stored); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading SidecarSet %s: %w", n.Name, err)
	} else if err != nil || !n.isSeenIn(stored) {
		return nil // the Pod comes before it
	}
	err = wait.PollUntilContextTimeout(ctx, glance, mostAwaited, true, func(context.Context) (bool, error) { return o.knows(n) })
	if err != nil {
		return fmt.Errorf("SidecarSet %s is not known to this manager yet, try again: %w", n.Name, err)
	}
	return nil
}

func (o AwaitOptions) knows(n note) (bool, error) {
	known, err := o.Known()
	if err != nil {
		return false, err
	}
	candidate := known.Named(n.Name)
	return candidate != nil && n.isSeenIn(candidate.Set), nil
}
