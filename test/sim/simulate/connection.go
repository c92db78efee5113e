package simulate

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Connection is a Client as admission has one: it reads, and patches the status of objects. It can do nothing else.
type Connection struct {
	client.Client
	To *Client
}

// Get implements client.Reader.
func (c Connection) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return c.To.Get(ctx, key, into, options...)
}

// List implements client.Reader.
func (c Connection) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return c.To.List(ctx, into, options...)
}

// Status implements client.StatusClient.
func (c Connection) Status() client.SubResourceWriter { return statusWriter{to: c.To} }

type statusWriter struct {
	client.SubResourceWriter
	to *Client
}

// Patch implements client.SubResourceWriter.
func (w statusWriter) Patch(ctx context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	body, err := patch.Data(o)
	if err != nil {
		return err
	}
	return w.to.Patch(ctx, o, "status", patch.Type(), body)
}
