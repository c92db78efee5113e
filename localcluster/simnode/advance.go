package simnode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// The reasons for which containers wait, as kubelets spell them.
const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonErrPull      = "ErrImagePull"
	reasonPullBackOff  = "ImagePullBackOff"
	reasonBadName      = "InvalidImageName"
	reasonCrashLoop    = "CrashLoopBackOff"
	reasonConfig       = "CreateContainerConfigError"
)

const (
	pullRetry   = time.Second      // a failed pull to its back-off
	configRetry = time.Second      // between looks for a missing ConfigMap or key
	longBackoff = 5 * time.Minute  // the longest pause between crashes
	calmAfter   = 10 * time.Minute // a container that ran so long starts counting crashes anew
	killedCode  = 137
)

// Situation is all that Advance and Status may look at besides the Sandbox.
type Situation struct {
	Pod *corev1.Pod
	Now time.Time
	// Defaults are the rules for Pods whose annotations say nothing.
	Defaults Rules
	// HostIP is the address of the Pod's node.
	HostIP string
	// Missing says what a container refers to that does not exist, "" if nothing. Nil: nothing is missing.
	Missing func(*corev1.Pod, *corev1.Container) string
}

// step is one call of Advance.
type step struct {
	Situation
	rules podRules
	box   *Sandbox
	next  time.Time // the earliest moment at which anything happens by itself; zero: none
}

// Advance moves a Sandbox to the moment s.Now: everything that was due happens. It returns the new Sandbox and when to
// look again, zero for "when the Pod changes". The error says what of the Pod's annotations could not be read; the
// Sandbox is right in spite of it.
func Advance(box Sandbox, s Situation) (Sandbox, time.Time, error) {
	box = box.clone()
	rules, err := rulesFor(s.Pod, s.Defaults)
	st := &step{Situation: s, rules: rules, box: &box}
	st.advance()
	return box, st.next, err
}

// due tells whether a moment has come; if not, it is noted as one to look again at. The zero moment never comes.
func (st *step) due(moment time.Time) bool {
	if moment.IsZero() {
		return false
	}
	if !moment.After(st.Now) {
		return true
	}
	if st.next.IsZero() || moment.Before(st.next) {
		st.next = moment
	}
	return false
}

// in is the moment after a delay; never for forever.
func (st *step) in(delay time.Duration) time.Time {
	if delay == forever {
		return time.Time{}
	}
	return st.Now.Add(delay)
}

func (st *step) advance() {
	box := st.box
	if box.Admitted.IsZero() {
		box.Admitted = st.Now
		box.Up = st.in(st.rules.Start)
		box.Phase = corev1.PodPending
		box.Killed = st.rules.kill
	}
	if st.Pod.DeletionTimestamp != nil {
		st.stop()
		return
	}
	if phase := st.Pod.Status.Phase; terminal(phase) && !terminal(box.Phase) {
		// Somebody else has ended the Pod. A kubelet does not take that back: it stops what still runs.
		box.Phase = phase
		st.exitAll(killedCode)
	}
	if terminal(box.Phase) || !st.due(box.Up) {
		return
	}
	if st.initialize() {
		st.runMain()
	}
	st.runEphemeral()
	st.kill()
	box.Phase = st.phase()
	if terminal(box.Phase) {
		st.exitAll(0) // sidecars do not outlive what they serve
	}
}

func terminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// stop ends a deleted Pod: its containers get their time, at most the grace period, and then are gone.
func (st *step) stop() {
	box := st.box
	if box.StopBy.IsZero() {
		delay := st.rules.Stop + preStop(st.Pod)
		if grace := st.Pod.DeletionGracePeriodSeconds; grace != nil {
			delay = min(delay, time.Duration(*grace)*time.Second)
		}
		if !box.anyRunning() {
			delay = 0
		}
		box.StopBy = st.in(delay)
	}
	if box.Stopped || !st.due(box.StopBy) {
		return
	}
	st.exitAll(0)
	box.Stopped = true
	if terminal(box.Phase) {
		return
	}
	box.Phase = corev1.PodSucceeded
	for i := range box.Containers {
		if c := &box.Containers[i]; c.Code != 0 || !c.ran() {
			box.Phase = corev1.PodFailed
		}
	}
	if len(box.Containers) == 0 {
		box.Phase = corev1.PodFailed
	}
}

// preStop is the longest sleep of a preStop hook: hooks run beside each other, and containers are told to stop after theirs.
func preStop(pod *corev1.Pod) time.Duration {
	longest := int64(0)
	for i := range pod.Spec.Containers {
		if hooks := pod.Spec.Containers[i].Lifecycle; hooks != nil && hooks.PreStop != nil && hooks.PreStop.Sleep != nil {
			longest = max(longest, hooks.PreStop.Sleep.Seconds)
		}
	}
	return time.Duration(longest) * time.Second
}

func (s *Sandbox) anyRunning() bool {
	for i := range s.Containers {
		if s.Containers[i].Does == running {
			return true
		}
	}
	return false
}

func (st *step) exitAll(code int32) {
	for i := range st.box.Containers {
		c := &st.box.Containers[i]
		if c.Does == running {
			c.exit(st.Now, code)
		}
		c.Next = time.Time{}
	}
}

// initialize runs the init containers, one after the other, and tells whether the main containers may run.
func (st *step) initialize() bool {
	spec := &st.Pod.Spec
	started := len(spec.Containers) > 0 && st.box.container(spec.Containers[0].Name) != nil
	for i := range spec.InitContainers {
		container := &spec.InitContainers[i]
		sidecar := podutil.IsRestartableInitContainer(container)
		if started && !sidecar {
			continue // a started Pod's init containers are history, whatever becomes of their image
		}
		c := st.box.begin(container, st.Now)
		st.run(c, container, life{sidecar: sidecar, init: !sidecar})
		if started {
			continue
		}
		if sidecar && c.Does != running {
			return false
		}
		if !sidecar && !c.done() {
			return false
		}
	}
	return true
}

func (st *step) runMain() {
	for i := range st.Pod.Spec.Containers {
		container := &st.Pod.Spec.Containers[i]
		st.run(st.box.begin(container, st.Now), container, life{})
	}
	st.resize()
}

// runEphemeral runs the containers that were added to the running Pod; they are never restarted.
func (st *step) runEphemeral() {
	for i := range st.Pod.Spec.EphemeralContainers {
		container := corev1.Container(st.Pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		st.run(st.box.begin(&container, st.Now), &container, life{ephemeral: true})
	}
}

// kill obeys AnnotationKill.
func (st *step) kill() {
	if st.rules.kill == st.box.Killed {
		return
	}
	st.box.Killed = st.rules.kill
	if c := st.box.container(killTarget(st.rules.kill)); c != nil && c.Does == running {
		container := st.containerSpec(c.Name)
		c.exit(st.Now, killedCode)
		st.afterExit(c, st.kindOf(container))
	}
}

// phase is the Pod's phase as its containers are.
func (st *step) phase() corev1.PodPhase {
	always := st.Pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || st.Pod.Spec.RestartPolicy == ""
	for i := range st.Pod.Spec.InitContainers {
		container := &st.Pod.Spec.InitContainers[i]
		c := st.box.container(container.Name)
		if c != nil && c.Does == exited && c.Code != 0 && c.Next.IsZero() && !podutil.IsRestartableInitContainer(container) {
			return corev1.PodFailed
		}
	}
	var failed, live bool
	for i := range st.Pod.Spec.Containers {
		c := st.box.container(st.Pod.Spec.Containers[i].Name)
		switch {
		case c == nil || !c.ran():
			return corev1.PodPending
		case c.Does != exited || !c.Next.IsZero():
			live = true
		case c.Code != 0:
			failed = true
		}
	}
	switch {
	case live || always:
		return corev1.PodRunning
	case failed:
		return corev1.PodFailed
	default:
		return corev1.PodSucceeded
	}
}
