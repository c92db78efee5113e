// Package cri sends the container runtime of a node the few requests that the daemon needs, in version 1 of the Container Runtime
// Interface. The daemon reads, pulls images, runs commands and stops containers; the rest, above all creating, starting and removing
// containers, is left to the kubelet.
//
// A runtime that is away is no error of the request: IsAway tells the two apart. Connections are restored by themselves.
package cri

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seed-69ecc383/kruise/internal/rules/registry"
)

const (
	// callTimeout is the timeout of requests that only read.
	callTimeout = 10 * time.Second
	// stopSlack is what the runtime may take to stop a container beyond the container's own time.
	stopSlack = 20 * time.Second
	// maxMessage is the size of the largest answer: a node may have thousands of containers that have ended.
	maxMessage = 16 << 20
	// maxPrinted is how much a command in a container may print: many run at a time, and only the beginning is used.
	maxPrinted = 1<<20 + 1<<12
)

// The labels that kubelets put on containers.
const (
	labelPodUID        = "io.kubernetes.pod.uid"
	labelContainerName = "io.kubernetes.container.name"
)

// Runtime is one container runtime of the node.
type Runtime struct {
	// Name is what the runtime calls itself, which is also how the IDs of its containers begin: containerd.
	Name string
	// Socket is where it serves.
	Socket string

	connection *grpc.ClientConn
	containers runtimeapi.RuntimeServiceClient
	images     runtimeapi.ImageServiceClient
}

// Open connects to the runtime at a socket, if one answers there.
func Open(ctx context.Context, socket string) (*Runtime, error) {
	connection, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		// A runtime that has restarted is connected to again within seconds.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
			MinConnectTimeout: 3 * time.Second,
		}))
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", socket, err)
	}
	r := &Runtime{
		Socket: socket, connection: connection,
		containers: runtimeapi.NewRuntimeServiceClient(connection), images: runtimeapi.NewImageServiceClient(connection),
	}
	if r.Name, err = r.version(ctx); err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return r, nil
}

// Close ends the connection.
func (r *Runtime) Close() error { return r.connection.Close() }

// Check returns why the runtime does not answer; nil if it does.
func (r *Runtime) Check(ctx context.Context) error {
	_, err := r.version(ctx)
	return err
}

func (r *Runtime) version(ctx context.Context) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := r.containers.Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", r.Socket, err)
	}
	return answer.RuntimeName, nil
}

// Containers returns the containers of a Pod, the newest of each name: those that run and those that have ended.
func (r *Runtime) Containers(ctx context.Context, podUID string) (map[string]*runtimeapi.Container, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := r.containers.ListContainers(ctx, &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{LabelSelector: map[string]string{labelPodUID: podUID}},
	})
	if err != nil {
		return nil, fmt.Errorf("listing containers of Pod %s: %w", podUID, err)
	}
	newest := map[string]*runtimeapi.Container{}
	for _, container := range answer.Containers {
		name := container.Labels[labelContainerName]
		if known := newest[name]; known == nil || known.CreatedAt < container.CreatedAt {
			newest[name] = container
		}
	}
	return newest, nil
}

// ContainerStatus returns what the runtime knows of a container; nil when it knows no such container.
func (r *Runtime) ContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	answer, err := r.containerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	return answer.GetStatus(), err
}

func (r *Runtime) containerStatus(
	ctx context.Context, request *runtimeapi.ContainerStatusRequest,
) (*runtimeapi.ContainerStatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := r.containers.ContainerStatus(ctx, request)
	if status.Code(err) == codes.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking for container %s: %w", request.ContainerId, err)
	}
	return answer, nil
}

// StopContainer stops a container, and kills it after the grace period. It succeeds for a container that has ended or is not known.
func (r *Runtime) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace+stopSlack)
	defer cancel()
	_, err := r.containers.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: int64(grace.Seconds())})
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("stopping container %s: %w", id, err)
	}
	return nil
}

// Output is what a command in a container has printed, and its exit code.
type Output struct {
	Stdout, Stderr []byte
	ExitCode       int32
}

// ErrTimedOut says that a command was ended because it took too long.
var ErrTimedOut = errors.New("the command timed out")

// Exec runs a command in a container. The time limit must be positive and is rounded up to whole seconds. A command that prints more than 1
// MiB ends in an error.
func (r *Runtime) Exec(ctx context.Context, id string, command []string, limit time.Duration) (Output, error) {
	seconds := max(1, int64((limit+time.Second-1)/time.Second))
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+callTimeout)
	defer cancel()
	request := &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: command, Timeout: seconds}
	answer, err := r.containers.ExecSync(ctx, request, grpc.MaxCallRecvMsgSize(maxPrinted))
	if status.Code(err) == codes.ResourceExhausted {
		return Output{}, fmt.Errorf("running %q in container %s: it printed more than 1 MiB, or %w", command, id, err)
	}
	if status.Code(err) == codes.DeadlineExceeded {
		return Output{}, fmt.Errorf("running %q in container %s for %d s: %w", command, id, seconds, ErrTimedOut)
	}
	if err != nil {
		return Output{}, fmt.Errorf("running %q in container %s: %w", command, id, err)
	}
	return Output{Stdout: answer.Stdout, Stderr: answer.Stderr, ExitCode: answer.ExitCode}, nil
}

// IsAway reports whether a request failed because the runtime does not answer, as while it restarts, and not because of the request itself.
func IsAway(err error) bool {
	var coded interface{ GRPCStatus() *status.Status }
	return errors.Is(err, ErrNone) || errors.As(err, &coded) && coded.GRPCStatus().Code() == codes.Unavailable
}

// SplitID splits the ID of a container as Pods' statuses have it: containerd://1234 is of the runtime containerd.
func SplitID(containerID string) (runtime, id string, err error) {
	runtime, id, found := strings.Cut(containerID, "://")
	if !found || runtime == "" || id == "" {
		return "", "", fmt.Errorf("container ID %q is not of the form RUNTIME://ID", containerID)
	}
	return runtime, id, nil
}

// annotationHash is where kubelets put the hash of the spec that they started a container from.
const annotationHash = "io.kubernetes.container.hash"

// Started is what a container was started with.
type Started struct {
	// Hash is what the kubelet made of its spec.
	Hash uint64
	// Environment is the environment of its process; nil if the runtime does not tell.
	Environment map[string]string
}

// Started returns what a container was started with; nil when the runtime knows no such container.
func (r *Runtime) Started(ctx context.Context, id string) (*Started, error) {
	answer, err := r.containerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if answer == nil || err != nil {
		return nil, err
	}
	hash, err := strconv.ParseUint(answer.Status.GetAnnotations()[annotationHash], 16, 64)
	if err != nil {
		return nil, fmt.Errorf("reading annotation %s of container %s: %w", annotationHash, id, err)
	}
	return &Started{Hash: hash, Environment: environment(answer.Info["info"])}, nil
}

// environment returns the environment in the verbose status of containerd and CRI-O; nil when it is not there.
func environment(info string) map[string]string {
	var verbose struct {
		RuntimeSpec struct {
			Process *struct {
				Env []string `json:"env"`
			} `json:"process"`
		} `json:"runtimeSpec"`
	}
	if err := json.Unmarshal([]byte(info), &verbose); err != nil || verbose.RuntimeSpec.Process == nil {
		return nil
	}
	out := map[string]string{}
	for _, assignment := range verbose.RuntimeSpec.Process.Env {
		name, value, _ := strings.Cut(assignment, "=")
		out[name] = value // the last one counts, as for the process
	}
	return out
}

// Pull is one image to pull.
type Pull struct {
	// Image is the full reference, by tag or by digest.
	Image string
	// Credentials are those for the registry; nil pulls anonymously.
	Credentials *registry.Credentials
	// Labels and Annotations are those of the sandbox that the image is pulled for.
	Labels, Annotations map[string]string
}

// ImageID returns what the runtime calls an image; empty when the node does not have it.
func (r *Runtime) ImageID(ctx context.Context, image string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := r.images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: imageSpec(image)})
	if err != nil {
		return "", fmt.Errorf("asking for image %s: %w", image, err)
	}
	return answer.Image.GetId(), nil
}

// PullImage pulls an image, and returns when it is on the node. The end of the context ends the pull.
func (r *Runtime) PullImage(ctx context.Context, p Pull) error {
	request := &runtimeapi.PullImageRequest{
		Image:         imageSpec(p.Image),
		SandboxConfig: &runtimeapi.PodSandboxConfig{Labels: p.Labels, Annotations: p.Annotations},
	}
	if c := p.Credentials; c != nil {
		request.Auth = &runtimeapi.AuthConfig{
			Username: c.Username, Password: c.Password, IdentityToken: c.IdentityToken, RegistryToken: c.RegistryToken,
		}
	}
	if _, err := r.images.PullImage(ctx, request); err != nil {
		return fmt.Errorf("pulling %s: %w", p.Image, err)
	}
	return nil
}

func imageSpec(image string) *runtimeapi.ImageSpec {
	return &runtimeapi.ImageSpec{Image: image, UserSpecifiedImage: image}
}
