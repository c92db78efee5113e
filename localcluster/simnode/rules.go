package simnode

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations of a Pod that overrule the simulator's flags for it. Durations are Go durations such as "300ms".
// AnnotationRunFor, AnnotationExitCode and AnnotationReadyDelay may name one container: "sim.kruise.io/run-for.app".
const (
	annotationPrefix = "sim.kruise.io/"

	// AnnotationStartDelay is the time from the Pod's arrival on its node until its sandbox is up.
	AnnotationStartDelay = annotationPrefix + "start-delay"
	// AnnotationRestartDelay is the time from a container's end until its successor runs.
	AnnotationRestartDelay = annotationPrefix + "restart-delay"
	// AnnotationStopDelay is the time a deleted Pod's containers take to stop, bounded by its grace period.
	AnnotationStopDelay = annotationPrefix + "stop-delay"
	// AnnotationResizeDelay is the time from a change of resources until it is in effect.
	AnnotationResizeDelay = annotationPrefix + "resize-delay"
	// AnnotationReadyDelay is the time a container runs before it is ready; "never" is allowed.
	AnnotationReadyDelay = annotationPrefix + "ready-delay"
	// AnnotationRunFor makes containers exit after that time; "forever" is allowed.
	AnnotationRunFor = annotationPrefix + "run-for"
	// AnnotationExitCode is the code that containers exit with when their time has run out.
	AnnotationExitCode = annotationPrefix + "exit-code"
	// AnnotationFailResize refuses changes of resources: "Infeasible" or "Deferred".
	AnnotationFailResize = annotationPrefix + "fail-resize"
	// AnnotationKill ends one container with exit code 137 each time its value, "CONTAINER/anything", changes.
	AnnotationKill = annotationPrefix + "kill"
)

// forever stands for a moment that does not come.
const forever = time.Duration(-1)

// Rules are how long things take on simulated nodes, and how they end.
type Rules struct {
	Start   time.Duration // arrival to sandbox
	Init    time.Duration // run time of an init container
	Restart time.Duration // end of a container to its successor
	Stop    time.Duration // deletion to end of the containers
	Resize  time.Duration // change of resources to its effect
	Ready   time.Duration // container start to ready; forever: never
	RunFor  time.Duration // run time of a container whose Pod is to complete
	Pull    time.Duration // image asked for ahead of Pods to its presence
	Backoff time.Duration // first pause after a second crash; doubles up to five minutes
	Jitter  float64       // each delay is stretched or shrunk by up to this share of it: 0.2 means 80 % to 120 %
	Seed    uint64        // of the jitter: the same seed and Pod UID give the same delays
	// Terse leaves out the two reports that controllers do not act on: that a Pod has arrived, and how its containers
	// ended when it was deleted. It is for measuring controllers at a scale where the API server is the limit.
	Terse bool
}

// DefaultRules are quick, so that tests are; a real node is some three times slower.
func DefaultRules() Rules {
	return Rules{
		Start:   300 * time.Millisecond,
		Init:    100 * time.Millisecond,
		Restart: 500 * time.Millisecond,
		Stop:    200 * time.Millisecond,
		Resize:  200 * time.Millisecond,
		RunFor:  time.Second,
		Pull:    500 * time.Millisecond,
		Backoff: 10 * time.Second,
	}
}

// podRules are the Rules of one Pod, with its annotations read.
type podRules struct {
	Rules
	runFor     map[string]time.Duration // by container; "" for all
	exitCode   map[string]int32
	ready      map[string]time.Duration
	failResize string
	kill       string
}

// rulesFor reads a Pod's annotations. What cannot be read is reported and has no effect.
func rulesFor(pod *corev1.Pod, defaults Rules) (podRules, error) {
	r := podRules{
		Rules:    defaults,
		runFor:   map[string]time.Duration{},
		exitCode: map[string]int32{},
		ready:    map[string]time.Duration{},
	}
	var failed []error
	for key, value := range pod.Annotations {
		if !strings.HasPrefix(key, annotationPrefix) {
			continue
		}
		if err := r.read(key, value); err != nil {
			failed = append(failed, fmt.Errorf("reading annotation %s: %w", key, err))
		}
	}
	r.stretch(pod)
	return r, errors.Join(failed...)
}

func (r *podRules) read(key, value string) error {
	key, container, _ := strings.Cut(strings.TrimPrefix(key, annotationPrefix), ".")
	key = annotationPrefix + key
	delays := map[string]*time.Duration{
		AnnotationStartDelay:   &r.Start,
		AnnotationRestartDelay: &r.Restart,
		AnnotationStopDelay:    &r.Stop,
		AnnotationResizeDelay:  &r.Resize,
	}
	if delay, ok := delays[key]; ok {
		return setDelay(delay, value)
	}
	switch key {
	case AnnotationReadyDelay:
		return setDelayOr(r.ready, container, value, "never")
	case AnnotationRunFor:
		return setDelayOr(r.runFor, container, value, "forever")
	case AnnotationExitCode:
		code, err := strconv.ParseUint(value, 10, 8)
		if err != nil {
			return err
		}
		r.exitCode[container] = int32(code)
	case AnnotationFailResize:
		if value != corev1.PodReasonInfeasible && value != corev1.PodReasonDeferred {
			return fmt.Errorf("%q is neither %s nor %s", value, corev1.PodReasonInfeasible, corev1.PodReasonDeferred)
		}
		r.failResize = value
	case AnnotationKill:
		r.kill = value
	default:
		return errors.New("not known")
	}
	return nil
}

func setDelay(to *time.Duration, value string) error {
	delay, err := time.ParseDuration(value)
	if err != nil {
		return err
	}
	if delay < 0 {
		return fmt.Errorf("%s is negative", value)
	}
	*to = delay
	return nil
}

func setDelayOr(to map[string]time.Duration, container, value, endless string) error {
	if value == endless {
		to[container] = forever
		return nil
	}
	var delay time.Duration
	if err := setDelay(&delay, value); err != nil {
		return err
	}
	to[container] = delay
	return nil
}

// stretch applies the jitter, the same each time for the same Pod.
func (r *podRules) stretch(pod *corev1.Pod) {
	if r.Jitter == 0 {
		return
	}
	sum := fnv.New64a()
	sum.Write([]byte(pod.UID)) // never fails
	random := rand.New(rand.NewPCG(r.Seed, sum.Sum64()))
	for _, delay := range []*time.Duration{&r.Start, &r.Init, &r.Restart, &r.Stop, &r.Resize} {
		*delay = time.Duration(float64(*delay) * (1 + r.Jitter*(2*random.Float64()-1)))
	}
}

// lookup prefers what is said of the container to what is said of all.
func lookup[V any](values map[string]V, container string) (V, bool) {
	if value, ok := values[container]; ok {
		return value, true
	}
	value, ok := values[""]
	return value, ok
}

// lifetime is how long a main container runs: forever, unless its Pod is one that completes or an annotation says so.
func (r *podRules) lifetime(pod *corev1.Pod, container string) time.Duration {
	if d, ok := lookup(r.runFor, container); ok {
		return d
	}
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.RestartPolicy == "" {
		return forever
	}
	return r.RunFor
}

func (r *podRules) readyAfter(container string) time.Duration {
	if d, ok := lookup(r.ready, container); ok {
		return d
	}
	return r.Ready
}

func (r *podRules) codeOf(container string) int32 {
	code, _ := lookup(r.exitCode, container)
	return code
}
