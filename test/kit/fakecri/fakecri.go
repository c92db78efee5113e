// Package fakecri is a container runtime that only says that it does: it serves version 1 of the Container Runtime Interface at a socket,
// as far as the daemon of a node uses it, remembers what it was asked, and is away when it is told to be.
package fakecri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Name is what a runtime calls itself unless it has another name.
const Name = "containerd"

// The labels that kubelets put on containers.
const labelPodUID, labelContainerName = "io.kubernetes.pod.uid", "io.kubernetes.container.name"

// Container is one container that the runtime says it has.
type Container struct {
	runtimeapi.ContainerStatus
	// PodUID is that of its Pod.
	PodUID string
	// Info is the verbose part of its status.
	Info map[string]string
}

// Runtime is the container runtime. Its functions may be changed while it is away, its records be read with Look.
type Runtime struct {
	// As is what the runtime calls itself.
	As string
	// OnPull decides what becomes of a pull; nil lets all succeed at once.
	OnPull func(ctx context.Context, request *runtimeapi.PullImageRequest) error
	// OnStop decides what becomes of a stop, before the container is said to have ended; nil lets all succeed at once.
	OnStop func(id string, seconds int64) error
	// OnExec answers a command in a container; nil lets all succeed and print nothing.
	OnExec func(ctx context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error)

	mu         sync.Mutex
	images     map[string]string
	pulls      []*runtimeapi.PullImageRequest
	containers map[string]*Container
	byPod      map[string][]*Container
	stops      []string
	server     *grpc.Server
}

// New returns a runtime without images and containers, which is away.
func New() *Runtime {
	return &Runtime{As: Name, images: map[string]string{}, containers: map[string]*Container{}, byPod: map[string][]*Container{}}
}

// Serve makes the runtime answer at a socket.
func (r *Runtime) Serve(socket string) error {
	if err := os.RemoveAll(socket); err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listening at %s: %w", socket, err)
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, containerService{r: r})
	runtimeapi.RegisterImageServiceServer(server, imageService{r: r})
	r.mu.Lock()
	r.server = server
	r.mu.Unlock()
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			panic(err) // a test can't go on without
		}
	}()
	return nil
}

// Away ends all that is under way, and answers no more until it is served again.
func (r *Runtime) Away() {
	r.mu.Lock()
	server := r.server
	r.mu.Unlock()
	server.Stop()
}

// Pulls returns the pulls that were asked for so far.
func (r *Runtime) Pulls() []*runtimeapi.PullImageRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*runtimeapi.PullImageRequest(nil), r.pulls...)
}

// Stops returns the IDs of the containers that were asked to stop so far.
func (r *Runtime) Stops() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.stops...)
}

// AddImage makes the runtime have an image.
func (r *Runtime) AddImage(image string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images[image] = "sha256:" + fmt.Sprintf("%064x", len(r.images)+1)
}

// AddContainer makes the runtime have a container.
func (r *Runtime) AddContainer(c *Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.containers[c.Id] = c
	r.byPod[c.PodUID] = append(r.byPod[c.PodUID], c)
}

type imageService struct {
	runtimeapi.UnimplementedImageServiceServer
	r *Runtime
}

func (s imageService) ImageStatus(_ context.Context, request *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if id, ok := s.r.images[request.Image.Image]; ok {
		return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: id}}, nil
	}
	return &runtimeapi.ImageStatusResponse{}, nil
}

func (s imageService) PullImage(ctx context.Context, request *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	s.r.mu.Lock()
	s.r.pulls = append(s.r.pulls, request)
	decide := s.r.OnPull
	s.r.mu.Unlock()
	if decide != nil {
		if err := decide(ctx, request); err != nil {
			return nil, status.Error(codes.Unknown, err.Error())
		}
	}
	s.r.AddImage(request.Image.Image)
	return &runtimeapi.PullImageResponse{ImageRef: request.Image.Image}, nil
}

type containerService struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	r *Runtime
}

func (s containerService) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: s.r.As, RuntimeVersion: "0.0.0", RuntimeApiVersion: "v1"}, nil
}

func (s containerService) ContainerStatus(_ context.Context,
	request *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	container := s.r.containers[request.ContainerId]
	if container == nil {
		return nil, status.Error(codes.NotFound, "no such container")
	}
	answer := &runtimeapi.ContainerStatusResponse{Status: &container.ContainerStatus}
	if request.Verbose {
		answer.Info = container.Info
	}
	return answer, nil
}

func (s containerService) ListContainers(_ context.Context, request *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse,
	error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	pod := request.Filter.GetLabelSelector()[labelPodUID]
	if pod == "" {
		return nil, status.Error(codes.Unimplemented, "only the containers of one Pod are listed")
	}
	answer := &runtimeapi.ListContainersResponse{}
	for _, c := range s.r.byPod[pod] {
		labels := map[string]string{labelPodUID: c.PodUID, labelContainerName: c.Metadata.GetName()}
		answer.Containers = append(answer.Containers, &runtimeapi.Container{
			Id: c.Id, Metadata: c.Metadata, State: c.State, CreatedAt: c.CreatedAt, Labels: labels,
		})
	}
	return answer, nil
}

func (s containerService) StopContainer(_ context.Context, request *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse,
	error) {
	s.r.mu.Lock()
	s.r.stops = append(s.r.stops, request.ContainerId)
	decide := s.r.OnStop
	s.r.mu.Unlock()
	if decide != nil {
		if err := decide(request.ContainerId, request.Timeout); err != nil {
			return nil, status.Error(codes.Unknown, err.Error())
		}
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if container := s.r.containers[request.ContainerId]; container != nil {
		container.State = runtimeapi.ContainerState_CONTAINER_EXITED
	}
	return &runtimeapi.StopContainerResponse{}, nil
}

func (s containerService) ExecSync(ctx context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	s.r.mu.Lock()
	answer := s.r.OnExec
	s.r.mu.Unlock()
	if answer == nil {
		return &runtimeapi.ExecSyncResponse{}, nil
	}
	return answer(ctx, request)
}
