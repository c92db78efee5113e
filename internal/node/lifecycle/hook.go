// Package lifecycle runs preStop hooks, and asks containers over HTTP, as a kubelet would.
//
// Its promise: a hook and the end of its container share one grace period, which a hook can't exceed; and the container gets what is left
// of it, two seconds at least. A request over HTTP goes to the container that it is for and to no other host.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/seed-69ecc383/kruise/internal/node/worker"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

const (
	// defaultGrace is the grace of a Pod without one.
	defaultGrace = 30 * time.Second
	// minStop is the time that every container gets to end, however long its hook took.
	minStop = 2 * time.Second
	// maxLogged is how much of the output of a command that failed is logged, in bytes.
	maxLogged = 1 << 10
	// userAgent is that of the kubelet's hooks.
	userAgent = "kube-lifecycle"
)

// Grace returns how long the hook and the end of a container of the Pod may take together.
func Grace(p *corev1.Pod) time.Duration {
	if seconds := p.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return pod.Seconds(*seconds)
	}
	return defaultGrace
}

// GraceLeft returns how long a container has to end after its hook has used some of the grace.
//
// Example: of 30 s after a hook of 12.4 s it is 18 s; after one of 29.5 s it is 2 s.
func GraceLeft(grace, used time.Duration) time.Duration {
	return max(minStop, grace-used.Truncate(time.Second))
}

// Runtime is the part of the container runtime that hooks need.
type Runtime interface {
	Exec(ctx context.Context, id string, command []string, limit time.Duration) (cri.Output, error)
}

// Hook is the preStop hook of one container.
type Hook struct {
	Runtime Runtime
	// ID is the container's in the runtime, Container its name in the Pod.
	ID, Container string
	Pod           *corev1.Pod
	// Handler is what to do, and Ports are those of the container, whose names it may use.
	Handler *corev1.LifecycleHandler
	Ports   []corev1.ContainerPort
	// Grace is how long it may take.
	Grace  time.Duration
	Events record.EventRecorder
}

// Run runs the hook. A failure is reported in an event and as the error, and does not keep the container from being stopped, unless the
// runtime is away: then the hook has not run yet, and there is no event.
//
// The event does not say why, as those of kubelets do not: commands and their output may be secret, and more people read events than logs
// of nodes.
func (h Hook) Run(ctx context.Context) error {
	err := h.run(ctx)
	if err != nil && ctx.Err() == nil && !cri.IsAway(err) {
		log.FromContext(ctx).Info("A preStop hook failed", "pod", klog.KObj(h.Pod), "container", h.Container, "problem", err.Error())
		h.Events.Event(ContainerRef(h.Pod, h.Container), corev1.EventTypeWarning, "FailedPreStopHook",
			"PreStopHook failed: the log of kruise-daemon on the node says why")
	}
	return err
}

func (h Hook) run(ctx context.Context) error {
	timedOut := fmt.Errorf("the hook was given up after %s, which is all the time that the container has", h.Grace)
	ctx, cancel := context.WithTimeoutCause(ctx, h.Grace, timedOut)
	defer cancel()
	var err error
	switch {
	case h.Handler.Exec != nil:
		err = h.exec(ctx, h.Handler.Exec.Command)
	case h.Handler.HTTPGet != nil:
		err = h.get(ctx, h.Handler.HTTPGet)
	case h.Handler.Sleep != nil:
		if !worker.Sleep(ctx, time.Duration(h.Handler.Sleep.Seconds)*time.Second) {
			err = ctx.Err()
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
		return fmt.Errorf("command %q ended with code %d: %s",
			command, out.ExitCode, strings.TrimSpace(string(printed[:min(len(printed), maxLogged)])))
	}
	return nil
}

// get runs a hook over HTTP. Any response is a success, because the server has received the request by then.
func (h Hook) get(ctx context.Context, handler *corev1.HTTPGetAction) error {
	port, err := portNumber(handler.Port, h.Ports)
	if err != nil {
		return err
	}
	e := Endpoint{Host: handler.Host, Port: port, UserAgent: userAgent}
	if e.Host == "" {
		e.Host = h.Pod.Status.PodIP
	}
	if e.Host == "" {
		return errors.New("the Pod has no address")
	}
	response, err := e.Get(ctx, handler)
	if handler.Scheme == corev1.URISchemeHTTPS && err != nil && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		h.Events.Eventf(ContainerRef(h.Pod, h.Container), corev1.EventTypeWarning, "LifecycleHTTPFallback",
			"The preStop hook of container %s asked over HTTPS and was answered over HTTP: asking over HTTP", h.Container)
		plain := handler.DeepCopy()
		plain.Scheme = corev1.URISchemeHTTP
		// What was meant to be encrypted must not be sent in the clear.
		plain.HTTPHeaders = slices.DeleteFunc(plain.HTTPHeaders, func(header corev1.HTTPHeader) bool {
			return http.CanonicalHeaderKey(header.Name) == "Authorization"
		})
		response, err = e.Get(ctx, plain)
	}
	if response.Status != 0 {
		return nil
	}
	return err
}

func portNumber(port intstr.IntOrString, ports []corev1.ContainerPort) (int, error) {
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

// ContainerRef returns the object of events about a container of a Pod.
func ContainerRef(p *corev1.Pod, container string) *corev1.ObjectReference {
	field := "containers"
	if slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == container }) {
		field = "initContainers"
	}
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		FieldPath: fmt.Sprintf("spec.%s{%s}", field, container),
	}
}
