package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"
)

// Command is a command to run in a container.
type Command struct {
	Namespace, Pod, Container string
	Args                      []string
	// In is what the command reads; nil if it reads nothing. Err is not written to with a terminal, which has one output.
	In       io.Reader
	Out, Err io.Writer
	// Size returns that of the terminal; it is nil if there is none.
	Size func() (width, height int, err error)
}

// Exec runs a command in a container, and returns the code that it ends with. It asks for a WebSocket, and for SPDY where something on the
// way to the API server does not let that pass.
func (c *Cluster) Exec(ctx context.Context, cmd Command) (int, error) {
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return 0, fmt.Errorf("finding the cluster: %w", err)
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	api, err := rest.RESTClientFor(config)
	if err != nil {
		return 0, fmt.Errorf("connecting: %w", err)
	}
	url := api.Post().Namespace(cmd.Namespace).Resource("pods").Name(cmd.Pod).SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: cmd.Container, Command: cmd.Args, Stdin: cmd.In != nil, Stdout: true, Stderr: cmd.Size == nil, TTY: cmd.Size != nil,
	}, scheme.ParameterCodec).URL()
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, url)
	if err != nil {
		return 0, err
	}
	socket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, url.String())
	if err != nil {
		return 0, err
	}
	either, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return 0, err
	}
	options := remotecommand.StreamOptions{Stdin: cmd.In, Stdout: cmd.Out, Stderr: cmd.Err}
	if cmd.Size != nil {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		options.Tty, options.Stderr, options.TerminalSizeQueue = true, nil, &sizes{ctx: ctx, of: cmd.Size}
	}
	err = either.StreamWithContext(ctx, options)
	var ended exec.CodeExitError
	switch {
	case errors.As(err, &ended):
		return ended.ExitStatus(), nil
	case err != nil:
		return 0, fmt.Errorf("running the command in container %s of Pod %s: %w", cmd.Container, cmd.Pod, err)
	}
	return 0, nil
}
