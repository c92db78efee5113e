package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/lifecycle"
	rules "github.com/seed-69ecc383/kruise/internal/rules/probe"
)

// maxOutput is how much of the output of a command is looked at, in bytes.
const maxOutput = 10 << 10

// runtime is the part of the container runtime that probes need.
type runtime interface {
	Containers(ctx context.Context, podUID string) (map[string]*runtimeapi.Container, error)
	ContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error)
	Exec(ctx context.Context, id string, command []string, limit time.Duration) (cri.Output, error)
}

func isRunning(c *runtimeapi.Container) bool {
	return c.State == runtimeapi.ContainerState_CONTAINER_RUNNING
}

func startTime(ctx context.Context, r runtime, id string) (time.Time, error) {
	status, err := r.ContainerStatus(ctx, id)
	if err == nil && status == nil {
		err = fmt.Errorf("container %s is gone", id)
	}
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, status.StartedAt), nil
}

// target is the container of a probe, and the timeout.
type target struct {
	id      string
	timeout time.Duration
}

// execute runs the handler of a probe. An error means that it could not be run, which says nothing of the container.
func execute(ctx context.Context, r runtime, p podProbe, to target) (rules.Outcome, error) {
	handler := p.spec.Probe.ProbeHandler
	switch {
	case handler.Exec != nil:
		return exec(ctx, r, handler.Exec.Command, to)
	case p.ip == "":
		return rules.Outcome{}, errors.New("the Pod has no address yet") // the request would go to the node itself
	}
	ctx, cancel := context.WithTimeout(ctx, to.timeout)
	defer cancel()
	switch {
	case handler.HTTPGet != nil:
		return get(ctx, p.ip, handler.HTTPGet), nil
	case handler.TCPSocket != nil:
		return connect(ctx, net.JoinHostPort(p.ip, strconv.Itoa(handler.TCPSocket.Port.IntValue()))), nil
	}
	return rules.Outcome{}, errors.New("the probe has no handler")
}

func succeeded(message string) rules.Outcome {
	return rules.Outcome{State: v1alpha1.ProbeSucceeded, Message: rules.Message(message)}
}

func failed(message string) rules.Outcome {
	return rules.Outcome{State: v1alpha1.ProbeFailed, Message: rules.Message(message)}
}

// exec probes by a command: its message is what it prints, on its standard error when it fails.
func exec(ctx context.Context, r runtime, command []string, to target) (rules.Outcome, error) {
	out, err := r.Exec(ctx, to.id, command, to.timeout)
	switch {
	case errors.Is(err, cri.ErrTimedOut):
		return failed(fmt.Sprintf("command %q timed out after %d s", command, int(to.timeout.Seconds()))), nil
	case err != nil && (cri.IsAway(err) || ctx.Err() != nil):
		return rules.Outcome{}, err
	case err != nil:
		return failed(err.Error()), nil // such as a command that does not exist
	case out.ExitCode != 0:
		return failed(head(out.Stderr)), nil
	}
	return succeeded(head(out.Stdout)), nil
}

func head(output []byte) string { return string(output[:min(len(output), maxOutput)]) }

// connect probes whether a port accepts connections.
func connect(ctx context.Context, address string) rules.Outcome {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return failed(err.Error())
	}
	_ = connection.Close() // nothing was sent
	return succeeded("")
}

// get probes over HTTP. A redirect to another host is not followed, and is a success.
func get(ctx context.Context, ip string, handler *corev1.HTTPGetAction) rules.Outcome {
	response, err := lifecycle.Endpoint{Host: ip, Port: handler.Port.IntValue(), UserAgent: "kube-probe"}.Get(ctx, handler)
	switch {
	case err != nil:
		return failed(err.Error())
	case response.Status < http.StatusOK || response.Status >= http.StatusBadRequest:
		return failed(fmt.Sprintf("HTTP probe failed with statuscode: %d", response.Status))
	case response.Status >= http.StatusMultipleChoices:
		return succeeded("Probe terminated redirects, Response body: " + string(response.Body))
	}
	return succeeded(string(response.Body))
}
