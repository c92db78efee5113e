package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// neighbour is another client of the same API server. It writes to ConfigMaps of its own at a steady rate, and takes note of how long the
// API server takes over it: what a rollout costs others.
type neighbour struct {
	client client.Client
}

// neighbourEvery is the time between two writes of the neighbour, and neighbourAlone how long it is measured while nothing else is done. It
// writes to neighbourObjects in turn: when the API server is slow for a while, writes to a single object wait for each other, and each that
// succeeds has all others tried again, until the API server does nothing else.
const (
	neighbourEvery   = 50 * time.Millisecond
	neighbourAlone   = 30 * time.Second
	neighbourObjects = 200
)

// neighbourObject returns the ConfigMap of a write.
func neighbourObject(write int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("neighbour-%d", write%neighbourObjects)}}
}

func newNeighbour(ctx context.Context, config *rest.Config) (*neighbour, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "neighbour"
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	err = atOnce(crowdWorkers/4, neighbourObjects, func(number int) error { return c.Create(ctx, neighbourObject(number)) })
	if err != nil {
		return nil, fmt.Errorf("creating objects of another client: %w", err)
	}
	return &neighbour{client: c}, nil
}

// during writes while something is done, and returns how many milliseconds its writes took, from when each was due.
func (n *neighbour) during(ctx context.Context, do func()) (quantiles, error) {
	var took []time.Duration
	var problems []error
	var mu sync.Mutex
	var writing, running sync.WaitGroup
	done := make(chan struct{})
	running.Go(func() {
		for write, due := 0, time.Now(); ; write, due = write+1, due.Add(neighbourEvery) {
			select {
			case <-done:
				return
			case <-time.After(time.Until(due)):
			}
			writing.Go(func() {
				patch := fmt.Appendf(nil, `{"data":{"at":"%d"}}`, due.UnixNano())
				err := n.client.Patch(ctx, neighbourObject(write), client.RawPatch(types.MergePatchType, patch))
				lasted := time.Since(due)
				mu.Lock()
				defer mu.Unlock()
				if took = append(took, lasted); err != nil {
					problems = append(problems, err)
				}
			})
		}
	})
	do()
	close(done)
	running.Wait()
	writing.Wait()
	if len(took) == 0 {
		return quantiles{}, errors.New("nothing was measured of what another client's writes take")
	}
	return quantilesOf(took), errors.Join(problems...)
}
