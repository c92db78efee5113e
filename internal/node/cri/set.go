package cri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// SocketFolder is the mounted folder of the node's sockets: a folder and no file, because a runtime that restarts creates a new socket.
const SocketFolder = "/hostvarrun"

// searchInterval is how often the daemon looks for a runtime.
const searchInterval = 10 * time.Second

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

	mu       sync.Mutex
	runtimes []*Runtime
}

// NewSet returns the set of the runtimes at some sockets. It is empty before Start finds them.
func NewSet(sockets []string) *Set { return &Set{sockets: sockets, found: make(chan struct{})} }

// Found returns a channel that is closed when a runtime has been found.
func (s *Set) Found() <-chan struct{} { return s.found }

// Start looks for runtimes until it has found one, and closes the connections when the context ends.
func (s *Set) Start(ctx context.Context) error {
	defer s.close()
	log := logr.FromContextOrDiscard(ctx)
	for logged := false; ; logged = true {
		err := s.search(ctx)
		if err == nil {
			break
		}
		if !logged {
			log.Info("No container runtime answers, looking again every 10 s",
				"sockets", strings.Join(s.sockets, " "), "problem", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(searchInterval):
		}
	}
	for _, r := range s.all() {
		log.Info("Found a container runtime", "runtime", r.Name, "socket", r.Socket)
	}
	<-ctx.Done()
	return nil
}

// search opens every socket that exists, and keeps the first of each runtime.
func (s *Set) search(ctx context.Context) error {
	var found []*Runtime
	var failed []error
	known := map[string]bool{}
	for _, socket := range s.sockets {
		if _, err := os.Stat(socket); err != nil {
			failed = append(failed, err)
			continue
		}
		r, err := Open(ctx, socket)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if known[r.Name] {
			_ = r.Close() // no request was sent
			continue
		}
		known[r.Name] = true
		found = append(found, r)
	}
	if len(found) == 0 {
		return errors.Join(failed...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runtimes = found
	close(s.found)
	return nil
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
