package probe

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
)

// maxMessage is the size of the longest message of a result, in bytes.
const maxMessage = 1024

// Pace is how often a container is asked, with its minimums applied.
type Pace struct {
	Delay, Timeout, Period time.Duration
	// Successes and Failures are how many answers of a kind in a row make it the result.
	Successes, Failures int32
}

// PaceOf returns the pace of a probe. What is not given, or less than 1, is 1.
func PaceOf(p *corev1.Probe) Pace {
	seconds := func(n int32) time.Duration { return time.Duration(max(1, n)) * time.Second }
	return Pace{
		Delay: seconds(p.InitialDelaySeconds), Timeout: seconds(p.TimeoutSeconds), Period: seconds(p.PeriodSeconds),
		Successes: max(1, p.SuccessThreshold), Failures: max(1, p.FailureThreshold),
	}
}

// Answer is what one question was answered with.
type Answer struct {
	State   v1alpha1.ProbeState
	Message string
}

// NotRunning is the answer of a container that does not run: nobody asks it.
func NotRunning(container string) Answer {
	return Answer{v1alpha1.ProbeFailed, fmt.Sprintf("Container(%s) is Non-running", container)}
}

// Tally counts the answers of one container to one question, and says when they make a result. Its zero value has seen no container.
type Tally struct {
	container string
	last      v1alpha1.ProbeState
	inARow    int32
}

// Meet tells the tally which container is asked, and reports whether another one was before: what is known then speaks of one that is gone.
func (t *Tally) Meet(container string) (another bool) {
	if t.container == container {
		return false
	}
	another = t.container != ""
	*t = Tally{container: container}
	return another
}

// Count counts an answer, and reports whether it is the result now.
//
// Example: with failureThreshold 3, of the answers yes, no, no, yes, no, no, no the first, the fourth and the seventh are results.
func (t *Tally) Count(a Answer, p Pace) (result bool) {
	if t.last == a.State {
		t.inARow++
	} else {
		t.last, t.inARow = a.State, 1
	}
	if a.State == v1alpha1.ProbeSucceeded {
		return t.inARow >= p.Successes
	}
	return t.inARow >= p.Failures
}

// Message returns what was printed as the message of a result: valid text of at most 1024 bytes, without line ends around it.
func Message(printed string) string {
	text := strings.ToValidUTF8(strings.TrimSpace(printed), "\uFFFD")
	if len(text) <= maxMessage {
		return text
	}
	cut := maxMessage
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}
