// Package connection decides in which state the connection to another cluster is, from what became of the attempts to reach it.
//
//	Connecting ──joined──► Connected ──3 probes failed──► Unreachable ──1 probe answered, joined anew──► Connected
//	    └──────join failed──► the reason of the failure, and another attempt after 5 s, 10 s, 20 s, ... 320 s
//
// A cluster object that is gone, or gives no access, ends the connection, and says so.
package connection

import (
	"cmp"
	"time"
)

// Reason says in which state a connection is. Wire: it is the reason of condition ClusterReady of a subset.
type Reason string

// The reasons that a connection itself can have.
const (
	// Connected means that the cluster answers and the caches of its objects are filled.
	Connected Reason = "Connected"
	// Connecting means that it is not known yet whether the cluster answers.
	Connecting Reason = "Connecting"
	// Unreachable means that the cluster does not answer.
	Unreachable Reason = "Unreachable"
	// NotFound means that there is no such cluster object in the hub.
	NotFound Reason = "ClusterNotFound"
	// Unhealthy means that the ClusterProfile says that the control plane is not healthy.
	Unhealthy Reason = "ClusterUnhealthy"
	// CredentialsInvalid means that the cluster object gives no access that may be used, or that the cluster does not accept it.
	CredentialsInvalid Reason = "CredentialsInvalid"
	// Forbidden means that the account in the cluster lacks a right.
	Forbidden Reason = "Forbidden"
	// TargetIsHub means that the cluster is the hub itself.
	TargetIsHub Reason = "TargetIsHub"
)

// Unreached begins the message of a connection that is Unreachable. What follows may differ with each attempt.
const Unreached = "the cluster can't be reached: "

// The reasons that a connection has for one UnitedDeployment.
const (
	// NotSelected means that the labels or the namespace of the cluster object are not those that the UnitedDeployment asks for.
	NotSelected Reason = "ClusterNotSelected"
	// IDChanged means that the cluster object leads to another cluster than the one that was written to.
	IDChanged Reason = "ClusterIDChanged"
	// NamespaceMissing means that the cluster has no namespace of the UnitedDeployment's name.
	NamespaceMissing Reason = "NamespaceNotFound"
	// KindMissing means that the cluster does not serve the kind of the workload.
	KindMissing Reason = "KindNotInstalled"
	// NameConflict means that an object of somebody else has the name of the workload.
	NameConflict Reason = "NameConflict"
)

// Times say how often a cluster is asked.
type Times struct {
	// Probe is the time from the start of one probe to that of the next, and ProbeLimit how long one may take.
	Probe, ProbeLimit time.Duration
	// Misses is how many probes must fail in a row until the cluster counts as unreachable.
	Misses int
	// Join is how long filling the caches may take.
	Join time.Duration
	// Backoff is the pause after the first join that failed. It doubles with each further one, up to MaxBackoff.
	Backoff, MaxBackoff time.Duration
	// Rediscovery is how often a cluster is asked for kinds that it did not serve before.
	Rediscovery time.Duration
	// Idle is how long a connection that nobody wants is kept.
	Idle time.Duration
}

// Usual returns the times that are used. A cluster that stops to answer is unreachable 35 seconds later at most: ten until the next probe,
// two more probes ten seconds apart, and five seconds that the last one may take.
func Usual() Times {
	return Times{
		Probe: 10 * time.Second, ProbeLimit: 5 * time.Second, Misses: 3, Join: 30 * time.Second,
		Backoff: 5 * time.Second, MaxBackoff: 320 * time.Second, Rediscovery: 30 * time.Second, Idle: 5 * time.Minute,
	}
}

// Problem is why a cluster cannot be used.
type Problem struct {
	Reason  Reason
	Message string
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

// State is how far a connection is.
type State struct {
	Reason  Reason
	Message string
	// ID is the identity of the cluster as of the last join: the UID of its namespace kube-system.
	ID string
	// Joined means that caches were filled and are kept, whether the cluster answers now or not.
	Joined bool
	// LastContact is when the cluster last answered.
	LastContact time.Time
	// Misses is how many probes have failed in a row, Failures how many joins.
	Misses, Failures int
	// Next is when the next join or probe is due.
	Next time.Time
}

// Begin returns the state of a connection that was never tried.
func Begin() State {
	return State{Reason: Connecting, Message: "the cluster was not reached yet"}
}

// Refused returns the state after the cluster object was found to give no access. A cluster object that is mended is tried at once.
func (s State) Refused(why *Problem) State {
	return State{Reason: why.Reason, Message: why.Message, ID: s.ID, LastContact: s.LastContact}
}

// JoinedAt returns the state after a join that began now and has succeeded.
func (s State) JoinedAt(now time.Time, id string, t Times) State {
	return State{Reason: Connected, Message: "the cluster answers", ID: id, Joined: true, LastContact: now, Next: now.Add(t.Probe)}
}

// JoinFailed returns the state after a join that has failed. With a backoff of 5 s the pauses are 5, 10, 20, ... 320 s.
func (s State) JoinFailed(now time.Time, why *Problem, t Times) State {
	pause := t.Backoff
	for range s.Failures {
		pause = min(2*pause, t.MaxBackoff)
	}
	return State{
		Reason: why.Reason, Message: s.told(why), ID: s.ID, LastContact: s.LastContact, Failures: s.Failures + 1, Next: now.Add(pause),
	}
}

// told returns the message of a problem, which stays the same while a cluster is unreachable: each attempt may fail in other words, with
// another port for example, and whoever writes them down would never rest.
func (s State) told(why *Problem) string {
	if s.Reason == Unreachable && why.Reason == Unreachable {
		return s.Message
	}
	return why.Message
}

// Probed returns the state after a probe that began now; why is nil if the cluster has answered. What the cluster itself says, such as that
// it does not accept the credentials, counts at once. Silence counts when it was met often enough.
func (s State) Probed(now time.Time, why *Problem, t Times) State {
	s.Next = now.Add(t.Probe)
	switch {
	case why == nil:
		s.Misses, s.LastContact = 0, now
		s.Reason, s.Message = Connected, "the cluster answers"
		return s
	case why.Reason != Unreachable:
		s.Misses = 0
		s.Reason, s.Message = why.Reason, why.Message
		return s
	}
	s.Misses++
	if s.Misses >= t.Misses {
		s.Message = s.told(why)
		s.Reason = Unreachable
	}
	return s
}

// Silent reports whether the last probe went without an answer: the cluster may be unreachable already, and nothing may wait for it.
func (s State) Silent() bool { return s.Misses > 0 }

// Overlaid returns the state as users of the cluster see it while its cluster object says that it is not healthy.
func (s State) Overlaid(why *Problem) State {
	if why != nil && s.Joined && s.Reason == Connected {
		s.Reason, s.Message = why.Reason, cmp.Or(why.Message, s.Message)
	}
	return s
}
