package scene

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IsUnanswered reports whether the API server has asked a webhook in vain, as it does on a machine that is so busy that no answer comes
// within the few seconds that it waits, and while a manager is not there. Nothing was written then.
func IsUnanswered(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}

// isLate reports whether the answer of a webhook took too long. A manager that is not there takes no connection, which is known at once.
func isLate(err error) bool {
	return IsUnanswered(err) && (strings.Contains(err.Error(), "deadline exceeded") || strings.Contains(err.Error(), "Timeout exceeded"))
}

// patient is a client that asks again where a webhook has answered too late: how busy the machine is says nothing about what a test is
// about.
type patient struct{ client.Client }

// asks is how often it asks.
const asks = 10

func (p patient) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	return insist(asks, isLate, func() error { return p.Client.Create(ctx, o, options...) })
}

func (p patient) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	return insist(asks, isLate, func() error { return p.Client.Update(ctx, o, options...) })
}

func (p patient) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return insist(asks, isLate, func() error { return p.Client.Patch(ctx, o, patch, options...) })
}

func (p patient) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	return insist(asks, isLate, func() error { return p.Client.Delete(ctx, o, options...) })
}

func (p patient) Status() client.SubResourceWriter {
	return patientWriter{SubResourceWriter: p.Client.Status()}
}

// patientWriter does the same for the status.
type patientWriter struct{ client.SubResourceWriter }

func (p patientWriter) Update(ctx context.Context, o client.Object, options ...client.SubResourceUpdateOption) error {
	return insist(asks, isLate, func() error { return p.SubResourceWriter.Update(ctx, o, options...) })
}

func (p patientWriter) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return insist(asks, isLate, func() error { return p.SubResourceWriter.Patch(ctx, o, patch, options...) })
}
