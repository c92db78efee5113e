package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	rules "github.com/seed-69ecc383/kruise/internal/rules/probe"
)

// mostRead is how much of an answer is looked at, in bytes.
const mostRead = 10 << 10

// maxRedirects is how often a server may send us elsewhere on the same host.
const maxRedirects = 10

// runtime is the container runtime, as far as questions go.
type runtime interface {
	Containers(ctx context.Context, podUID string) (map[string]*runtimeapi.Container, error)
	ContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error)
	Exec(ctx context.Context, id string, command []string, limit time.Duration) (cri.Output, error)
}

// meet returns the container that is asked; nil when there is none.
func meet(ctx context.Context, r runtime, a asked) (*runtimeapi.Container, error) {
	all, err := r.Containers(ctx, a.pod)
	return all[a.probe.ContainerName], err
}

func isRunning(c *runtimeapi.Container) bool {
	return c.State == runtimeapi.ContainerState_CONTAINER_RUNNING
}

func startOf(ctx context.Context, r runtime, id string) (time.Time, error) {
	status, err := r.ContainerStatus(ctx, id)
	if err != nil {
		return time.Time{}, err
	}
	if status == nil {
		return time.Time{}, fmt.Errorf("container %s is gone", id)
	}
	return time.Unix(0, status.StartedAt), nil
}

// target is a container that is asked, and the time that it has.
type target struct {
	id    string
	limit time.Duration
}

// put asks a container. An error means that it could not be asked, which says nothing of it.
func put(ctx context.Context, r runtime, a asked, to target) (rules.Outcome, error) {
	probe := &a.probe.Probe.Probe
	switch {
	case probe.Exec != nil:
		return run(ctx, r, probe.Exec.Command, to)
	case a.ip == "":
		return rules.Outcome{}, errors.New("the Pod has no address yet") // the node's own would answer otherwise
	}
	ctx, cancel := context.WithTimeout(ctx, to.limit)
	defer cancel()
	switch {
	case probe.HTTPGet != nil:
		return get(ctx, a.ip, probe.HTTPGet), nil
	case probe.TCPSocket != nil:
		return connect(ctx, net.JoinHostPort(a.ip, strconv.Itoa(probe.TCPSocket.Port.IntValue()))), nil
	}
	return rules.Outcome{}, errors.New("there is nothing to ask")
}

func yes(message string) rules.Outcome {
	return rules.Outcome{State: v1alpha1.ProbeSucceeded, Message: rules.Message(message)}
}

func no(message string) rules.Outcome {
	return rules.Outcome{State: v1alpha1.ProbeFailed, Message: rules.Message(message)}
}

// run asks by a command: what it prints is the message, on its standard error when the answer is no.
func run(ctx context.Context, r runtime, command []string, to target) (rules.Outcome, error) {
	out, err := r.Exec(ctx, to.id, command, to.limit)
	switch {
	case errors.Is(err, cri.ErrTimedOut):
		return no(fmt.Sprintf("command %q timed out after %d s", command, int(to.limit.Seconds()))), nil
	case err != nil && (cri.IsAway(err) || ctx.Err() != nil):
		return rules.Outcome{}, err
	case err != nil:
		return no(err.Error()), nil // such as a command that is not there
	case out.ExitCode != 0:
		return no(string(head(out.Stderr))), nil
	}
	return yes(string(head(out.Stdout))), nil
}

func head(printed []byte) []byte { return printed[:min(len(printed), mostRead)] }

// connect asks whether somebody listens.
func connect(ctx context.Context, address string) rules.Outcome {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return no(err.Error())
	}
	_ = connection.Close() // nothing was said
	return yes("")
}

// get asks over HTTP. A redirect to another host is not followed: it says as much as an answer.
func get(ctx context.Context, ip string, probe *corev1.HTTPGetAction) rules.Outcome {
	scheme := "http"
	if probe.Scheme != "" {
		scheme = strings.ToLower(string(probe.Scheme))
	}
	url := scheme + "://" + net.JoinHostPort(ip, strconv.Itoa(probe.Port.IntValue())) + "/" + strings.TrimPrefix(probe.Path, "/")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return no(err.Error())
	}
	request.Header = headers(probe.HTTPHeaders)
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
		request.Header.Del("Host")
	}
	c := &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, // as the kubelet: the Pod's certificate is of the Pod's making
		},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if next.URL.Hostname() != via[0].URL.Hostname() {
				return http.ErrUseLastResponse
			}
			if len(via) >= maxRedirects {
				return fmt.Errorf("there were %d redirects", maxRedirects)
			}
			return nil
		},
	}
	answer, err := c.Do(request)
	if err != nil {
		return no(err.Error())
	}
	defer func() { _ = answer.Body.Close() }() // it has been read
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostRead))
	switch {
	case err != nil:
		return no(err.Error())
	case answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusBadRequest:
		return no(fmt.Sprintf("HTTP probe failed with statuscode: %d", answer.StatusCode))
	case answer.StatusCode >= http.StatusMultipleChoices:
		return yes("Probe terminated redirects, Response body: " + string(body))
	}
	return yes(string(body))
}

func headers(given []corev1.HTTPHeader) http.Header {
	out := http.Header{}
	for _, h := range given {
		out.Add(h.Name, h.Value)
	}
	if _, there := out["User-Agent"]; !there {
		out.Set("User-Agent", "kube-probe")
	}
	if _, there := out["Accept"]; !there {
		out.Set("Accept", "*/*")
	}
	return out
}
