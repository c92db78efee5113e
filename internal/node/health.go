package node

import (
	"context"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/seed-69ecc383/kruise/internal/node/cri"
)

// readyTimeout is how long what readiness rests on may take to answer.
const readyTimeout = 2 * time.Second

// health answers whether the process lives, and whether it can work. The two differ on purpose: an API server that is slow, or a container runtime
// that is restarted, must not have every daemon of the cluster restarted.
type health struct {
	caches   cache.Cache
	runtimes *cri.Set
}

func (h health) handlers() map[string]http.Handler {
	return map[string]http.Handler{
		"/healthz": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }), // a client that has gone needs no answer
		"/readyz":  http.HandlerFunc(h.ready),
	}
}

func (h health) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if !h.caches.WaitForCacheSync(ctx) {
		http.Error(w, "what concerns this node has not been read yet", http.StatusInternalServerError)
		return
	}
	if err := h.runtimes.Check(ctx); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte("ok\n")) // a client that has gone needs no answer
}
