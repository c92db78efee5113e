package process

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/internal/admission/server"
)

// TestWebhooksOutliveTheControllers: whether a manager is asked to end or loses its Lease, the API server has time to turn to another one, once.
func TestWebhooksOutliveTheControllers(t *testing.T) {
	const delay = time.Second
	for name, asked := range map[string]bool{"the manager is asked to end": true, "it loses its Lease": false} {
		t.Run(name, func(t *testing.T) {
			e := NewEnding(WebhookOptions{}, delay, &server.Server{})
			whole, end := context.WithCancel(t.Context())
			running := e.After(whole)
			group, stop := context.WithCancel(t.Context()) // that of the webhooks in the manager
			var served atomic.Bool
			go func() {
				_ = e.outlive(group, func(ctx context.Context) error {
					served.Store(true)
					<-ctx.Done()
					served.Store(false)
					return nil
				})
			}()
			for !served.Load() {
				time.Sleep(time.Millisecond)
			}
			began := time.Now()
			if asked {
				end()
				<-running.Done() // the controllers go on until then
				stop()
			} else {
				stop()
				if running.Err() != nil {
					t.Error("a manager that nobody has asked to end is ended")
				}
			}
			e.Wait()
			if took := time.Since(began); took < delay || took > 2*delay || served.Load() {
				t.Errorf("webhooks were served for %s, want %s", took, delay)
			}
			end()
		})
	}
}
