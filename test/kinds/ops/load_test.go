package ops

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
)

// TestManyQuestions puts as many Pods on a node as a kubelet takes, and asks each of them two questions a second.
func TestManyQuestions(t *testing.T) {
	const pods, watched = 110, 10 * time.Second
	e := newEnv(t)
	e.node.Relax(10 * time.Second)
	e.script().says("ask", 0, "fine", "")
	var all []*corev1.Pod
	for i := range pods {
		p := &corev1.Pod{}
		p.Namespace, p.Name, p.Labels = e.Namespace, fmt.Sprintf("p%d", i), map[string]string{"app": "many"}
		p.Spec.Containers = []corev1.Container{{Name: "main", Image: "image"}}
		e.Must(e.node.Run(e.Ctx, p, 0))
		all = append(all, p)
	}
	probe := func(name string) string {
		return fmt.Sprintf(
			`{name: %s, containerName: main, podConditionType: example.com/%s, probe: {exec: {command: [ask]}, periodSeconds: 1}}`, name,
			name,
		)
	}
	e.mark("m", `{selector: {matchLabels: {app: many}}, probes: [`+probe("a")+`, `+probe("b")+`]}`)
	for _, p := range all {
		e.eventuallyShows(p, "example.com/a", "True fine")
		e.eventuallyShows(p, "example.com/b", "True fine")
	}
	asked := func() (n int) {
		for _, p := range all {
			n += len(e.node.Calls(string(p.UID)))
		}
		return n
	}
	version := func() string {
		n := &v1alpha1.NodePodProbe{}
		e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Name: e.node.Name}, n))
		return n.ResourceVersion
	}
	// On a machine with much else to do, ten seconds may be bad ones.
	e.Eventually("each question is put once a second, and results that do not change are not written", func() error {
		before, was, used, began := asked(), version(), e.daemonSeconds(), time.Now()
		time.Sleep(watched)
		took := time.Since(began)
		rate := float64(asked()-before) / took.Seconds() / (2 * pods)
		late := e.lateness(all, began)
		t.Logf("%.2f answers a second to each question, late by %s in the middle, %s at the 99th percentile and %s at most, %.0f ms of CPU a second, %d MiB",
			rate, late[len(late)/2], late[len(late)*99/100], late[len(late)-1], (e.daemonSeconds()-used)/took.Seconds()*1000, e.daemonMemory()>>20)
		if now := version(); rate < 0.7 || now != was {
			return fmt.Errorf("each is put %.2f times a second, and the version was %s and is %s", rate, was, now)
		}
		return nil
	})
	var events corev1.EventList
	e.Must(e.Client.List(e.Ctx, &events, client.InNamespace(e.Namespace)))
	probed := 0
	for _, event := range events.Items {
		if strings.HasPrefix(event.Reason, "KruiseProbe") {
			probed += int(max(1, event.Count))
		}
	}
	if most := 2 * 2 * pods; probed > most {
		t.Errorf("there are %d events of probes, want no more than two for each of %d", probed, 2*pods)
	}
	if memory := e.daemonMemory(); memory > 128<<20 {
		t.Errorf("the daemon takes %d MiB, want 128 at most", memory>>20)
	}
}

// lateness returns by how much more than the period of a second the questions to each Pod lay apart since a moment, sorted. There are two to a Pod,
// which take turns.
func (e *env) lateness(pods []*corev1.Pod, since time.Time) []time.Duration {
	var out []time.Duration
	for _, p := range pods {
		var at []time.Time
		for _, c := range e.node.Calls(string(p.UID)) {
			if c.At.After(since) {
				at = append(at, c.At)
			}
		}
		for i := range len(at) - 2 {
			out = append(out, max(0, at[i+2].Sub(at[i])-time.Second).Round(time.Millisecond))
		}
	}
	slices.Sort(out)
	return out
}

func (e *env) daemonFile(name string) string {
	e.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(e.daemon.PID()), name))
	e.Must(err)
	return string(text)
}

// daemonMemory returns what the daemon keeps in memory, in bytes.
func (e *env) daemonMemory() int {
	e.Helper()
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindStringSubmatch(e.daemonFile("status"))
	if found == nil {
		e.Fatal("the system does not say how much memory the daemon takes")
	}
	kilobytes, err := strconv.Atoi(found[1])
	e.Must(err)
	return kilobytes << 10
}

// daemonSeconds returns the CPU time that the daemon has used.
func (e *env) daemonSeconds() float64 {
	e.Helper()
	fields := regexp.MustCompile(`\) \S+(?: \S+){10} (\d+) (\d+)`).FindStringSubmatch(e.daemonFile("stat"))
	if fields == nil {
		e.Fatal("the system does not say how much time the daemon has used")
	}
	user, err := strconv.ParseFloat(fields[1], 64)
	e.Must(err)
	system, err := strconv.ParseFloat(fields[2], 64)
	e.Must(err)
	const ticks = 100 // a second, on every Linux
	return (user + system) / ticks
}
