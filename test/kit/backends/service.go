package backends

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// Service leads requests to the endpoints of a Service that are ready, each to any of them, as nodes do for those who call it inside of a
// cluster. It needs Pods whose addresses can be reached, as those of real nodes.
type Service struct {
	// URL is where requests go.
	URL string

	name     string
	server   http.Server
	unfollow func() error

	mu     sync.Mutex
	slices map[string]*discoveryv1.EndpointSlice
}

// Call begins to serve a Service. The caller ends it by Close.
func Call(ctx context.Context, c *cluster.Cluster, namespace, name string) (*Service, error) {
	s := &Service{name: name, slices: map[string]*discoveryv1.EndpointSlice{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serving Service %s: %w", name, err)
	}
	if s.unfollow, err = c.Follow(ctx, &discoveryv1.EndpointSliceList{}, namespace, s.see); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	s.URL = "http://" + listener.Addr().String()
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", s.endpoint() },
		// A connection that is kept could break, which would have the request be sent again.
		Transport: &http.Transport{DisableKeepAlives: true},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	s.server.Handler = proxy
	go func() { _ = s.server.Serve(listener) }() // it ends by Close
	return s, nil
}

// Close ends it, and says what of the endpoints was missed.
func (s *Service) Close() error { return errors.Join(s.server.Close(), s.unfollow()) }

func (s *Service) see(event watch.Event) {
	slice, is := event.Object.(*discoveryv1.EndpointSlice)
	if !is || slice.Labels[discoveryv1.LabelServiceName] != s.name {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.slices, client.ObjectKeyFromObject(slice).Name)
	if event.Type != watch.Deleted {
		s.slices[slice.Name] = slice
	}
}

// endpoint returns the address of an endpoint that is ready; one that nobody listens at if there is none.
func (s *Service) endpoint() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ready []string
	for _, slice := range s.slices {
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready = append(ready, net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*slice.Ports[0].Port))))
			}
		}
	}
	if len(ready) == 0 {
		return "no-endpoint-is-ready.invalid"
	}
	slices.Sort(ready)
	return ready[rand.IntN(len(ready))]
}
