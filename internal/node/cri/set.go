package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// SocketFolder is the mounted folder of the node's sockets: a folder and no file, because a runtime that restarts creates a new socket.
const SocketFolder = "/hostvarrun"

const (
	// searchInterval is how often the daemon looks for runtimes.
	searchInterval = 10 * time.Second
	// goneAfter is at how many looks in a row the socket of a runtime is missing when another takes its place: one that restarts makes it
	// anew.
	goneAfter = 3
)

// ErrNone says that no runtime has been found yet.
var ErrNone = errors.New("no container runtime has been found yet")

// Sockets returns where a runtime may serve, in the order of preference: the one place that is named, a full path or one below the folder,
// or those below the folder where runtimes usually are.
func Sockets(folder, named string) []string {
	if filepath.IsAbs(named) {
		return []string{named}
	}
	names := []string{named}
	if named == "" {
		names = nil
		for _, name := range []string{"containerd", "crio", "cri-dockerd"} {
			names = append(names, name+".sock", name+"/"+name+".sock")
		}
	}
	for i := range names {
		names[i] = filepath.Join(folder, names[i])
	}
	return names
}

// Set is the runtimes of the node: there may be several while one takes another's place.
type Set struct {
	sockets []string
	found   chan struct{}
	// Interval is how often it looks for runtimes.
	Interval time.Duration
	// passedOver are sockets of runtimes that are known by another one, missing how often in a row a socket was not there. Only search uses
	// them.
	passedOver map[string]bool
	missing    map[string]int

	mu       sync.Mutex
	runtimes []*Runtime
}

// NewSet returns the set of the runtimes at some sockets. It is empty before Start finds them.
func NewSet(sockets []string) *Set {
	return &Set{
		sockets: sockets, found: make(chan struct{}), Interval: searchInterval, passedOver: map[string]bool{}, missing: map[string]int{},
	}
}

// Found returns a channel that is closed when a runtime has been found.
func (s *Set) Found() <-chan struct{} { return s.found }

// Start looks for runtimes until the context ends, and then closes the connections. It goes on looking when it has found one: another may
// come up later, or take its place.
func (s *Set) Start(ctx context.Context) error {
	defer s.close()
	log := logr.FromContextOrDiscard(ctx)
	for logged := false; ; {
		found, err := s.search(ctx)
		for _, r := range found {
			log.Info("Found a container runtime", "runtime", r.Name, "socket", r.Socket)
		}
		if len(s.all()) == 0 && !logged {
			logged = true
			log.Info("No container runtime answers, looking again every 10 s",
				"sockets", strings.Join(s.sockets, " "), "problem", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.Interval):
		}
	}
}

// search opens the sockets that exist and are not open, and returns the runtimes that are new, of each the first. The error says why others
// are passed over.
func (s *Set) search(ctx context.Context) (found []*Runtime, err error) {
	s.dropMissing()
	var failed []error
	for _, socket := range s.sockets {
		if !exists(socket) {
			failed = append(failed, fmt.Errorf("there is no socket %s", socket))
			continue
		}
		if s.passedOver[socket] || slices.ContainsFunc(s.all(), func(r *Runtime) bool { return r.Socket == socket }) {
			continue
		}
		r, err := Open(ctx, socket)
		switch {
		case err != nil:
			failed = append(failed, err)
		case slices.ContainsFunc(s.all(), func(other *Runtime) bool { return other.Name == r.Name }):
			s.passedOver[socket] = true
			_ = r.Close() // no request was sent
		default:
			s.set(append(slices.Clone(s.all()), r))
			found = append(found, r)
		}
	}
	return found, errors.Join(failed...)
}

// dropMissing removes the runtimes whose sockets have been missing for a while, but for the last one.
func (s *Set) dropMissing() {
	for _, r := range s.all() {
		s.missing[r.Socket]++
		if exists(r.Socket) {
			delete(s.missing, r.Socket)
		}
		if all := s.all(); s.missing[r.Socket] >= goneAfter && len(all) > 1 {
			s.set(slices.DeleteFunc(slices.Clone(all), func(other *Runtime) bool { return other == r }))
			clear(s.passedOver)
			_ = r.Close() // it serves nobody any more
		}
	}
}

// set sets the runtimes, in the order of their sockets.
func (s *Set) set(all []*Runtime) {
	slices.SortFunc(all, func(a, b *Runtime) int {
		return cmp.Compare(slices.Index(s.sockets, a.Socket), slices.Index(s.sockets, b.Socket))
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.runtimes) == 0 {
		close(s.found)
	}
	s.runtimes = all
}

func exists(socket string) bool {
	_, err := os.Stat(socket)
	return err == nil
}

func (s *Set) all() []*Runtime {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runtimes
}

func (s *Set) close() {
	for _, r := range s.all() {
		_ = r.Close() // the process ends
	}
}

// Primary returns the runtime that images and probes are for; ErrNone before one is found.
func (s *Set) Primary() (*Runtime, error) {
	if all := s.all(); len(all) > 0 {
		return all[0], nil
	}
	return nil, ErrNone
}

// Of returns the runtime that a container is of, and the container's ID there. The ID is one as Pods' statuses have it.
func (s *Set) Of(containerID string) (r *Runtime, id string, err error) {
	name, id, err := SplitID(containerID)
	if err != nil {
		return nil, "", err
	}
	all := s.all()
	if len(all) == 0 {
		return nil, "", ErrNone
	}
	for _, r := range all {
		if r.Name == name {
			return r, id, nil
		}
	}
	return nil, "", fmt.Errorf("this node has no container runtime %s", name)
}

// Check returns why no runtime answers; nil if one does.
func (s *Set) Check(ctx context.Context) error {
	r, err := s.Primary()
	if err != nil {
		return err
	}
	return r.Check(ctx)
}
