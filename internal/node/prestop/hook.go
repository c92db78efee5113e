package prestop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/internal/node/cri"
)

// mostTold is how much is told of what a command that failed has printed, in bytes.
const mostTold = 1 << 10

// maxRedirects is how often a server may send us elsewhere on the same host.
const maxRedirects = 10

// userAgent is what servers see of a hook; the kubelet calls itself so.
const userAgent = "kube-lifecycle"

// Runtime is the container runtime, as far as hooks go.
type Runtime interface {
	Exec(ctx context.Context, id string, command []string, limit time.Duration) (cri.Output, error)
}

// Hook is what one container asks for before it is stopped.
type Hook struct {
	Runtime Runtime
	// ID is the container's in the runtime, Container its name in the Pod.
	ID, Container string
	Pod           *corev1.Pod
	// Asked is what is to be done, and Ports those of the container, whose names it may use.
	Asked *corev1.LifecycleHandler
	Ports []corev1.ContainerPort
	// Grace is how long it may take; it is given up then.
	Grace  time.Duration
	Events record.EventRecorder
}

// Run runs the hook. A failure is told in an event, and in the error: it does not keep the container from being stopped, but for one of a runtime
// that is away, which has not been asked yet.
//
// The event does not say why, as those of kubelets do not: commands and what they print may be secret, and more people read events than logs of nodes.
func (h Hook) Run(ctx context.Context) error {
	err := h.run(ctx)
	if err != nil && ctx.Err() == nil && !cri.IsAway(err) {
		log.FromContext(ctx).Info("A preStop hook failed", "pod", klog.KObj(h.Pod), "container", h.Container, "problem", err.Error())
		h.Events.Event(About(h.Pod, h.Container), corev1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed: the log of kruise-daemon on the node says why")
	}
	return err
}

func (h Hook) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, h.Grace, fmt.Errorf("the hook was given up after %s, which is all the time that the container has", h.Grace))
	defer cancel()
	var err error
	switch {
	case h.Asked.Exec != nil:
		err = h.exec(ctx, h.Asked.Exec.Command)
	case h.Asked.HTTPGet != nil:
		err = h.get(ctx, h.Asked.HTTPGet)
	case h.Asked.Sleep != nil:
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(time.Duration(h.Asked.Sleep.Seconds) * time.Second):
		}
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
}

func (h Hook) exec(ctx context.Context, command []string) error {
	out, err := h.Runtime.Exec(ctx, h.ID, command, h.Grace)
	if err != nil {
		return err
	}
	if out.ExitCode != 0 {
		printed := slices.Concat(out.Stderr, out.Stdout)
		return fmt.Errorf("command %q ended with code %d: %s", command, out.ExitCode, strings.TrimSpace(string(printed[:min(len(printed), mostTold)])))
	}
	return nil
}

// get asks over HTTP. Any answer will do: that there was one says that the server knows.
func (h Hook) get(ctx context.Context, asked *corev1.HTTPGetAction) error {
	port, err := portOf(asked.Port, h.Ports)
	if err != nil {
		return err
	}
	host := asked.Host
	if host == "" {
		host = h.Pod.Status.PodIP
	}
	if host == "" {
		return errors.New("the Pod has no address")
	}
	scheme := "http"
	if asked.Scheme != "" {
		scheme = strings.ToLower(string(asked.Scheme))
	}
	address := "://" + net.JoinHostPort(host, strconv.Itoa(port)) + "/" + strings.TrimPrefix(asked.Path, "/")
	err = ask(ctx, scheme+address, asked.HTTPHeaders)
	if scheme == "https" && isPlain(err) {
		h.Events.Eventf(About(h.Pod, h.Container), corev1.EventTypeWarning, "LifecycleHTTPFallback",
			"The preStop hook of container %s asked over HTTPS and was answered over HTTP: asking over HTTP", h.Container)
		err = ask(ctx, "http"+address, asked.HTTPHeaders)
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
	c := &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			Proxy:             nil,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, // as the kubelet: the Pod's certificate is of the Pod's making
		},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if next.URL.Hostname() != via[0].URL.Hostname() || len(via) >= maxRedirects {
				return http.ErrUseLastResponse // an answer like any other: a Pod does not say whom the node asks
			}
			return nil
		},
	}
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

// About returns what events about a container of a Pod are about.
func About(p *corev1.Pod, container string) *corev1.ObjectReference {
	part := "containers"
	for i := range p.Spec.InitContainers {
		if p.Spec.InitContainers[i].Name == container {
			part = "initContainers"
		}
	}
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		FieldPath: fmt.Sprintf("spec.%s{%s}", part, container),
	}
}
