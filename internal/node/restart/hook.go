package restart

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
	"k8s.io/apimachinery/pkg/util/intstr"
)

// userAgent is what servers see of a hook; the kubelet calls itself so.
const userAgent = "kube-lifecycle"

// runHook runs what the container asks for before it is stopped, within the grace.
func (w *worker) runHook(ctx context.Context, t target, id string) error {
	grace := t.grace()
	ctx, cancel := context.WithTimeoutCause(ctx, grace, fmt.Errorf("the hook was given up after %s, which is all the time that the container has", grace))
	defer cancel()
	preStop := t.container().PreStop
	var err error
	switch {
	case preStop.Exec != nil:
		err = w.exec(ctx, t, id)
	case preStop.HTTPGet != nil:
		err = w.get(ctx, t)
	case preStop.Sleep != nil:
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(preStop.Sleep.Seconds) * time.Second):
		}
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
}

func (w *worker) exec(ctx context.Context, t target, id string) error {
	command := t.container().PreStop.Exec.Command
	out, err := t.runtime.Exec(ctx, id, command, t.grace())
	if err != nil {
		return err
	}
	if out.ExitCode != 0 {
		return fmt.Errorf("command %q ended with code %d: %s", command, out.ExitCode, strings.TrimSpace(string(append(out.Stderr, out.Stdout...))))
	}
	return nil
}

// get asks over HTTP. Any answer will do: that there was one says that the server knows.
func (w *worker) get(ctx context.Context, t target) error {
	hook := t.container().PreStop.HTTPGet
	port, err := portOf(hook.Port, t.container().Ports)
	if err != nil {
		return err
	}
	host := hook.Host
	if host == "" {
		host = t.pod.Status.PodIP
	}
	if host == "" {
		return errors.New("the Pod has no address")
	}
	scheme := "http"
	if hook.Scheme != "" {
		scheme = strings.ToLower(string(hook.Scheme))
	}
	address := "://" + net.JoinHostPort(host, strconv.Itoa(port)) + "/" + strings.TrimPrefix(hook.Path, "/")
	err = ask(ctx, scheme+address, hook.HTTPHeaders)
	if scheme == "https" && isPlain(err) {
		w.Events.Eventf(t.object(), corev1.EventTypeWarning, "LifecycleHTTPFallback", "The preStop hook of container %s asked over HTTPS and was answered over HTTP: asking over HTTP", t.Name)
		err = ask(ctx, "http"+address, hook.HTTPHeaders)
	}
	return err
}

func isPlain(err error) bool {
	return err != nil && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

func ask(ctx context.Context, url string, headers []corev1.HTTPHeader) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Accept", "*/*")
	for _, h := range headers {
		if http.CanonicalHeaderKey(h.Name) == "Host" {
			request.Host = h.Value
		} else {
			request.Header.Set(h.Name, h.Value)
		}
	}
	c := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		Proxy:             nil,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, // as the kubelet: the Pod's certificate is of the Pod's making
	}}
	answer, err := c.Do(request)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 10<<10)) // what it says does not matter
	return answer.Body.Close()
}

func portOf(port intstr.IntOrString, ports []corev1.ContainerPort) (int, error) {
	if port.Type == intstr.Int {
		return port.IntValue(), nil
	}
	for _, p := range ports {
		if p.Name == port.StrVal {
			return int(p.ContainerPort), nil
		}
	}
	if number, err := strconv.Atoi(port.StrVal); err == nil {
		return number, nil
	}
	return 0, fmt.Errorf("the container has no port %s", port.StrVal)
}
