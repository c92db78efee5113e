package fakenode

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Call is something that the runtime was asked to do.
type Call struct {
	// Verb is stop or exec.
	Verb string
	// Container is the name of the container, ID its identity.
	Container, ID string
	// Timeout is the time that was given to it, in seconds.
	Timeout int64
	At      time.Time
}

// Exec answers a command in a container: it may take its time, and has to end with the context.
type Exec func(ctx context.Context, container string, command []string) (*runtimeapi.ExecSyncResponse, error)

// Runtime is a container runtime with containers that do nothing.
type Runtime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	runtimeapi.UnimplementedImageServiceServer

	server *grpc.Server

	mu         sync.Mutex
	containers []*runtimeapi.ContainerStatus
	labels     map[string]map[string]string
	calls      []Call
	exec       Exec
	stopError  map[string]error
	stopDelay  time.Duration
	made       int
}

// Serve serves a runtime at a socket, whose folder is made, until the context ends.
func Serve(ctx context.Context, socket string) (*Runtime, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listening at %s: %w", socket, err)
	}
	r := &Runtime{server: grpc.NewServer(), labels: map[string]map[string]string{}, stopError: map[string]error{}}
	runtimeapi.RegisterRuntimeServiceServer(r.server, r)
	runtimeapi.RegisterImageServiceServer(r.server, r)
	go func() { _ = r.server.Serve(listener) }() // ends with Stop
	context.AfterFunc(ctx, r.server.Stop)
	return r, nil
}

// OnExec sets how commands are answered.
func (r *Runtime) OnExec(exec Exec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exec = exec
}

// OnStop sets how long containers take to stop.
func (r *Runtime) OnStop(delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopDelay = delay
}

// RefuseStop makes the stopping of all containers of a name fail; nil lets it succeed again.
func (r *Runtime) RefuseStop(container string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopError[container] = err
}

// Calls returns what the runtime was asked to do with the containers of a Pod.
func (r *Runtime) Calls(podUID string) []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.calls), func(c Call) bool { return r.labels[c.ID]["io.kubernetes.pod.uid"] != podUID })
}

// run starts a new container of a Pod, and returns its identity.
func (r *Runtime) run(podUID, container string, attempt uint32) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made++
	now := time.Now().UnixNano()
	s := &runtimeapi.ContainerStatus{
		Id: fmt.Sprintf("%s-%d", container, r.made), Metadata: &runtimeapi.ContainerMetadata{Name: container, Attempt: attempt},
		State: runtimeapi.ContainerState_CONTAINER_RUNNING, CreatedAt: now, StartedAt: now,
	}
	r.labels[s.Id] = map[string]string{"io.kubernetes.pod.uid": podUID, "io.kubernetes.container.name": container}
	r.containers = append(r.containers, s)
	return s.Id
}

// isRunning reports whether a container runs, and how it has ended if not.
func (r *Runtime) isRunning(id string) (running bool, code int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.find(id)
	return s != nil && s.State == runtimeapi.ContainerState_CONTAINER_RUNNING, s.GetExitCode()
}

// end ends a container by itself.
func (r *Runtime) end(id string, code int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.find(id); s != nil && s.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
		s.State, s.ExitCode, s.FinishedAt = runtimeapi.ContainerState_CONTAINER_EXITED, code, time.Now().UnixNano()
	}
}

// find returns a container; the caller holds the lock.
func (r *Runtime) find(id string) *runtimeapi.ContainerStatus {
	for _, s := range r.containers {
		if s.Id == id {
			return s
		}
	}
	return nil
}

func (r *Runtime) note(verb, id string, timeout int64) (container string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.find(id)
	if s == nil {
		return "", status.Errorf(codes.NotFound, "no container %s", id)
	}
	r.calls = append(r.calls, Call{Verb: verb, Container: s.Metadata.Name, ID: id, Timeout: timeout, At: time.Now()})
	return s.Metadata.Name, nil
}

// Version answers a question of the daemon.
func (r *Runtime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: "1", RuntimeApiVersion: "v1"}, nil
}

// ListContainers answers a question of the daemon.
func (r *Runtime) ListContainers(_ context.Context, asked *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &runtimeapi.ListContainersResponse{}
	for _, s := range r.containers {
		matches := asked.Filter.GetId() == "" || asked.Filter.GetId() == s.Id
		for key, value := range asked.Filter.GetLabelSelector() {
			matches = matches && r.labels[s.Id][key] == value
		}
		if matches {
			out.Containers = append(out.Containers, &runtimeapi.Container{
				Id: s.Id, Metadata: s.Metadata, State: s.State, CreatedAt: s.CreatedAt, Labels: r.labels[s.Id],
			})
		}
	}
	return out, nil
}

// ContainerStatus answers a question of the daemon.
func (r *Runtime) ContainerStatus(_ context.Context, asked *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse,
	error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.find(asked.ContainerId)
	if s == nil {
		return nil, status.Errorf(codes.NotFound, "no container %s", asked.ContainerId)
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{
		Id: s.Id, Metadata: s.Metadata, State: s.State, CreatedAt: s.CreatedAt, StartedAt: s.StartedAt, FinishedAt: s.FinishedAt,
		ExitCode: s.ExitCode, Labels: r.labels[s.Id],
	}}, nil
}

// StopContainer ends a container after a while.
func (r *Runtime) StopContainer(ctx context.Context, asked *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	name, err := r.note("stop", asked.ContainerId, asked.Timeout)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	refused, delay := r.stopError[name], r.stopDelay
	r.mu.Unlock()
	if refused != nil {
		return nil, refused
	}
	if running, _ := r.isRunning(asked.ContainerId); running {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	r.end(asked.ContainerId, 137)
	return &runtimeapi.StopContainerResponse{}, nil
}

// ExecSync runs a command, as OnExec says.
func (r *Runtime) ExecSync(ctx context.Context, asked *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	name, err := r.note("exec", asked.ContainerId, asked.Timeout)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	exec := r.exec
	r.mu.Unlock()
	if exec == nil {
		return &runtimeapi.ExecSyncResponse{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(asked.Timeout)*time.Second)
	defer cancel()
	answer, err := exec(ctx, name, asked.Cmd)
	if ctx.Err() != nil {
		return nil, status.Errorf(codes.DeadlineExceeded, "command %q timed out", asked.Cmd)
	}
	return answer, err
}
