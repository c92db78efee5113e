package probe

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
)

// maxMessage is the size of the longest message of a result, in bytes, and maxEncoded that of its JSON, in which some characters take six.
const maxMessage, maxEncoded = 1024, 1538

// Timing is when a probe runs, and how many outcomes make a result.
type Timing struct {
	Delay, Timeout, Period time.Duration
	// Successes and Failures are how many outcomes of a kind in a row make it the result.
	Successes, Failures int32
}

// TimingOf returns the timing of a probe. What is not given, or less than 1, is 1.
func TimingOf(p *corev1.Probe) Timing {
	seconds := func(n int32) time.Duration { return time.Duration(max(1, n)) * time.Second }
	return Timing{
		Delay: seconds(p.InitialDelaySeconds), Timeout: seconds(p.TimeoutSeconds), Period: seconds(p.PeriodSeconds),
		Successes: max(1, p.SuccessThreshold), Failures: max(1, p.FailureThreshold),
	}
}

// Outcome is the outcome of one run of a probe.
type Outcome struct {
	State   v1alpha1.ProbeState
	Message string
}

// NotRunning is the outcome of a probe of a container that does not run.
func NotRunning(container string) Outcome {
	return Outcome{v1alpha1.ProbeFailed, fmt.Sprintf("Container(%s) is Non-running", container)}
}

// Counter counts the outcomes of one probe in one container. Its zero value has seen no container.
type Counter struct {
	// StartedAt is when the container started, for whoever counts to keep; a new container resets it.
	StartedAt time.Time

	container string
	last      v1alpha1.ProbeState
	inARow    int32
}

// Follow starts the count anew if the container is another one than before. It reports whether there was one before, whose result is
// obsolete.
func (c *Counter) Follow(container string) (replaced bool) {
	if c.container == container {
		return false
	}
	replaced = c.container != ""
	*c = Counter{container: container}
	return replaced
}

// Count counts an outcome, and reports whether it is the result now.
//
// Example: with failureThreshold 3, of the outcomes success, failure, failure, success, failure, failure, failure the first, the fourth and
// the seventh are results.
func (c *Counter) Count(o Outcome, t Timing) (result bool) {
	if c.last == o.State {
		c.inARow++
	} else {
		c.last, c.inARow = o.State, 1
	}
	if o.State == v1alpha1.ProbeSucceeded {
		return c.inARow >= t.Successes
	}
	return c.inARow >= t.Failures
}

// Message returns the output of a probe as the message of its result: valid text of at most 1024 bytes, without line ends around it. Output
// of many control characters, which take more in JSON, is cut earlier.
func Message(printed string) string {
	text := cut(strings.ToValidUTF8(strings.TrimSpace(printed), "\uFFFD"), maxMessage)
	for {
		encoded, err := json.Marshal(text)
		if err != nil || len(encoded) <= maxEncoded {
			return text
		}
		text = cut(text, len(text)*maxEncoded/len(encoded))
	}
}

// cut returns the beginning of a text, of at most so many bytes and without half a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
