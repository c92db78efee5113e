// Package process is what the managers of Kruise have in common as processes: how they reach the API server, serve webhooks and metrics, and
// end.
package process

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/seed-69ecc383/kruise/internal/clock"
)

// ShutdownTimeout is how long writes that are under way may take to end.
const ShutdownTimeout = 15 * time.Second

// RestConfig returns how the API server is reached, without a limit of our own: the server's priority and fairness sets the pace.
func RestConfig(kubeconfig, userAgent string, by *clock.Clock) (*rest.Config, error) {
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	c.QPS = -1
	c.UserAgent = userAgent
	c.Wrap(by.Transport)
	return c, nil
}
