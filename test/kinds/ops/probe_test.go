package ops

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// script is what the commands of a node answer, by their first word.
type script struct {
	mu      sync.Mutex
	answers map[string]*runtimeapi.ExecSyncResponse
	// given is how often each command has given its present answer.
	given map[string]int
}

func (s *script) says(command string, code int32, stdout, stderr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[command] = &runtimeapi.ExecSyncResponse{ExitCode: code, Stdout: []byte(stdout), Stderr: []byte(stderr)}
	s.given[command] = 0
}

func (s *script) times(command string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given[command]
}

func (e *env) script() *script {
	s := &script{answers: map[string]*runtimeapi.ExecSyncResponse{}, given: map[string]int{}}
	e.node.OnExec(func(_ context.Context, _ string, command []string) (*runtimeapi.ExecSyncResponse, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if answer := s.answers[command[0]]; answer != nil {
			s.given[command[0]]++
			return answer, nil
		}
		return &runtimeapi.ExecSyncResponse{ExitCode: 127, Stderr: []byte("no such command")}, nil
	})
	return s
}

func (e *env) mark(name, spec string) *v1alpha1.PodProbeMarker {
	e.Helper()
	m := parse[v1alpha1.PodProbeMarker](e, "spec: "+spec)
	m.Name = name
	e.Must(e.Client.Create(e.Ctx, m))
	return m
}

// shows complains when a condition of a Pod is not "status message".
func (e *env) shows(p *corev1.Pod, kind, want string) error {
	if err := e.Client.Get(e.Ctx, client.ObjectKeyFromObject(p), p); err != nil {
		return err
	}
	for _, c := range p.Status.Conditions {
		if string(c.Type) == kind {
			if got := strings.TrimSpace(string(c.Status) + " " + c.Message); got != want {
				return fmt.Errorf("condition %s is %q, want %q", kind, got, want)
			}
			return nil
		}
	}
	return fmt.Errorf("there is no condition %s", kind)
}

func (e *env) eventuallyShows(p *corev1.Pod, kind, want string) {
	e.Helper()
	e.Eventually(kind+" is "+want, func() error { return e.shows(p, kind, want) })
}

// asks returns what the test's node is asked to ask: Pod and name of the question.
func (e *env) asks() (string, error) {
	n := &v1alpha1.NodePodProbe{}
	if err := e.Client.Get(e.Ctx, client.ObjectKey{Name: e.node.Name}, n); err != nil {
		return "", err
	}
	var out []string
	for _, p := range n.Spec.PodProbes {
		for _, asked := range p.Probes {
			out = append(out, p.Name+" "+asked.Name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", "), nil
}

func (e *env) eventuallyAsks(want string) {
	e.Helper()
	e.Eventually("the node asks "+want, func() error {
		got, err := e.asks()
		if err == nil && got != want {
			err = fmt.Errorf("it asks %q", got)
		}
		return err
	})
}

func TestIdleExample(t *testing.T) {
	e := newEnv(t)
	s := e.script()
	s.says("/home/game/idle.sh", 1, "ignored", "2 players online\n")
	p := e.runPod("game-0", func(p *corev1.Pod) { p.Labels["app"] = "game-server" }, "main")
	m := parse[v1alpha1.PodProbeMarker](e, e.example("probe-idle.yaml"))
	e.Must(e.Client.Create(e.Ctx, m))
	const cost = "controller.kubernetes.io/pod-deletion-cost"
	began := time.Now()
	e.eventuallyShows(p, "game.io/idle", "False 2 players online")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s, want the period of 5 s and a moment", took)
	}
	has := func(label, costs string) {
		e.Helper()
		e.Eventually("the Pod has the marks of the answer", func() error {
			e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(p), p))
			if p.Labels["gameserver-idle"] != label || p.Annotations[cost] != costs {
				return fmt.Errorf("labels %v, annotations %v", p.Labels, p.Annotations)
			}
			return nil
		})
	}
	has("", "10")
	s.says("/home/game/idle.sh", 0, "nobody\n", "ignored")
	e.eventuallyShows(p, "game.io/idle", "True nobody")
	has("true", "-10")
	s.says("/home/game/idle.sh", 1, "", "1 player online")
	e.eventuallyShows(p, "game.io/idle", "False 1 player online")
	has("", "10")
	e.Eventually("the events tell", func() error { return e.told(p, "KruiseProbeSucceeded", "KruiseProbeFailed") })
	e.Eventually("the marker counts its Pod", func() error {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(m), m))
		if m.Status.MatchedPods != 1 || m.Status.ObservedGeneration != m.Generation {
			return fmt.Errorf("status %+v", m.Status)
		}
		return nil
	})
}

func TestTwoQuestionsToOneContainer(t *testing.T) {
	e := newEnv(t)
	s := e.script()
	s.says("up", 0, "yes", "")
	s.says("down", 1, "", "no")
	p := e.runPod("p", nil, "main")
	e.mark("m", `{selector: {matchLabels: {app: p}}, probes: [
  {name: a, containerName: main, podConditionType: example.com/a, probe: {exec: {command: [up]}, periodSeconds: 1}},
  {name: b, containerName: main, podConditionType: example.com/b, probe: {exec: {command: [down]}, periodSeconds: 1, failureThreshold: 3}}]}`)
	e.eventuallyShows(p, "example.com/a", "True yes")
	e.eventuallyShows(p, "example.com/b", "False no")
	e.Eventually("the results are reported", func() error {
		return e.Client.Get(e.Ctx, client.ObjectKey{Name: e.node.Name}, &v1alpha1.NodePodProbe{})
	})
	e.AtRest(4*time.Second, "what does not change", func() string {
		n := &v1alpha1.NodePodProbe{}
		e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Name: e.node.Name}, n))
		return n.ResourceVersion
	})
}

func TestResultsTakeTheirThreshold(t *testing.T) {
	e := newEnv(t)
	s := e.script()
	s.says("ask", 0, "fine", "")
	p := e.runPod("p", nil, "main")
	e.mark("m", `{selector: {matchLabels: {app: p}}, probes: [
  {name: a, containerName: main, podConditionType: example.com/a, probe: {exec: {command: [ask]}, periodSeconds: 1, failureThreshold: 4}}]}`)
	e.eventuallyShows(p, "example.com/a", "True fine")
	s.says("ask", 1, "", "bad")
	e.eventuallyShows(p, "example.com/a", "False bad")
	if bad := s.times("ask"); bad < 4 {
		t.Errorf("it counts as bad after %d failures, want four", bad)
	}
}

func TestAnsweredOverTheNetwork(t *testing.T) {
	e := newEnv(t)
	var mu sync.Mutex
	code := http.StatusOK
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.UserAgent() != "kube-probe" || r.URL.Path != "/healthy" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		if code == http.StatusFound {
			w.Header().Set("Location", "http://other.example/")
		}
		w.WriteHeader(code)
		_, _ = fmt.Fprint(w, "body")
	}))
	t.Cleanup(web.Close)
	answer := func(now int) { mu.Lock(); defer mu.Unlock(); code = now }
	port := int32(web.Listener.Addr().(*net.TCPAddr).Port)
	p := e.runPod("p", func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: port}}
	}, "main")
	e.mark("m", `{selector: {matchLabels: {app: p}}, probes: [
  {name: h, containerName: main, podConditionType: example.com/http, probe: {httpGet: {path: /healthy, port: web}, periodSeconds: 1}},
  {name: t, containerName: main, podConditionType: example.com/tcp, probe: {tcpSocket: {port: web}, periodSeconds: 1}},
  {name: unknown-port, containerName: main, podConditionType: example.com/port, probe: {tcpSocket: {port: other}}},
  {name: unknown-container, containerName: other, podConditionType: example.com/container, probe: {tcpSocket: {port: 1}}}]}`)
	e.eventuallyAsks("p m#h, p m#t")
	e.eventuallyShows(p, "example.com/http", "True body")
	e.eventuallyShows(p, "example.com/tcp", "True")
	answer(http.StatusInternalServerError)
	e.eventuallyShows(p, "example.com/http", "False HTTP probe failed with statuscode: 500")
	answer(http.StatusFound)
	e.eventuallyShows(p, "example.com/http", "True Probe terminated redirects, Response body: body")
	e.node.End(p, "main", 1)
	e.Eventually("it says that the container does not run, or that it has restarted", func() error {
		return errors.Join(e.told(p, "KruiseProbeFailed"))
	})
	e.eventuallyShows(p, "example.com/http", "True Probe terminated redirects, Response body: body")
}

func TestWhatIsAskedFollowsTheMarkers(t *testing.T) {
	e := newEnv(t)
	e.script().says("ask", 0, "fine", "")
	probe := func(name, condition string) string {
		return fmt.Sprintf(
			`{name: %s, containerName: main, podConditionType: %s, probe: {exec: {command: [ask]}, periodSeconds: 1}}`, name, condition,
		)
	}
	way := e.mark("way", `{selector: {matchLabels: {app: p}}, probes: [`+probe("a", "example.com/a")+`]}`)
	gateway := e.mark(
		"gateway", `{selector: {matchLabels: {app: p}}, probes: [`+probe("b", "example.com/b")+`, `+probe("c", "example.com/c")+`]}`,
	)
	p := e.runPod("p", nil, "main")
	e.eventuallyAsks("p gateway#b, p gateway#c, p way#a")
	e.Must(e.Client.Delete(e.Ctx, way))
	e.eventuallyAsks("p gateway#b, p gateway#c")
	e.Eventually("the marker is gone", func() error {
		if err := e.Client.Get(e.Ctx, client.ObjectKeyFromObject(way), way); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(gateway), gateway))
	before := gateway.DeepCopy()
	gateway.Spec.Probes = gateway.Spec.Probes[:1]
	e.Must(e.Client.Patch(e.Ctx, gateway, client.MergeFrom(before)))
	e.eventuallyAsks("p gateway#b")

	label := func(value string) {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(p), p))
		was := p.DeepCopy()
		p.Labels["app"] = value
		e.Must(e.Client.Patch(e.Ctx, p, client.MergeFrom(was)))
	}
	label("other")
	e.eventuallyAsks("")
	label("p")
	e.eventuallyAsks("p gateway#b")
	e.Must(e.Client.Delete(e.Ctx, &v1alpha1.NodePodProbe{ObjectMeta: objectMeta(e.node.Name)}))
	e.eventuallyAsks("p gateway#b")
	second := e.mark(
		"same", `{selector: {matchLabels: {app: p}}, probes: [`+probe("x", "example.com/b")+`, `+probe("two", "example.com/y")+`]}`,
	)
	e.eventuallyAsks("p gateway#b, p same#two")
	e.Eventually("the younger marker tells of it", func() error {
		var list corev1.EventList
		e.Must(e.Client.List(e.Ctx, &list, client.InNamespace(e.Namespace)))
		for _, event := range list.Items {
			if event.InvolvedObject.UID == second.UID && event.Reason == "ConditionTaken" {
				return nil
			}
		}
		return errors.New("there is no event")
	})
	e.Must(e.Client.Delete(e.Ctx, &corev1.Node{ObjectMeta: objectMeta(e.node.Name)}))
	e.Eventually("it goes with its node", func() error {
		if _, err := e.asks(); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

func TestDaemonComesBackToItsResults(t *testing.T) {
	e := newEnv(t)
	s := e.script()
	s.says("ask", 0, "fine", "")
	p := e.runPod("p", nil, "main")
	e.mark("m", `{selector: {matchLabels: {app: p}}, probes: [
  {name: a, containerName: main, podConditionType: example.com/a, probe: {exec: {command: [ask]}, periodSeconds: 1}}]}`)
	e.eventuallyShows(p, "example.com/a", "True fine")
	before := &v1alpha1.NodePodProbe{}
	e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Name: e.node.Name}, before))
	e.killDaemon()
	e.startDaemon()
	time.Sleep(4 * time.Second)
	after := &v1alpha1.NodePodProbe{}
	e.Must(e.Client.Get(e.Ctx, client.ObjectKey{Name: e.node.Name}, after))
	if before.ResourceVersion != after.ResourceVersion {
		t.Errorf("the daemon that came back reports what was known: %+v, then %+v", before.Status, after.Status)
	}
	s.says("ask", 1, "", "bad")
	e.eventuallyShows(p, "example.com/a", "False bad")
}

func TestWrongMarkersAreRefused(t *testing.T) {
	e := newEnv(t)
	const ask = `probe: {exec: {command: [a]}}`
	one := func(probe string) string { return `{selector: {matchLabels: {a: b}}, probes: [{` + probe + `}]}` }
	for name, tc := range map[string]struct{ spec, want string }{
		"selects everything": {
			`{selector: {}, probes: [{name: a, containerName: c, podConditionType: d, ` + ask + `}]}`, "spec.selector",
		},
		"asks nothing":    {`{selector: {matchLabels: {a: b}}, probes: []}`, "spec.probes"},
		"a reserved name": {one(`name: Ready, containerName: c, podConditionType: d, ` + ask), "is the name of a condition"},
		"a reserved condition": {
			one(`name: a, containerName: c, podConditionType: Ready, ` + ask), "is a condition that is written otherwise",
		},
		"a name with #": {one(`name: "a#b", containerName: c, podConditionType: d, ` + ask), "must not contain a #"},
		"shows nowhere": {one(`name: a, containerName: c, ` + ask), "podConditionType"},
		"two handlers": {
			one(`name: a, containerName: c, podConditionType: d, probe: {exec: {command: [a]}, tcpSocket: {port: 1}}`), "only one of",
		},
		"no handler": {
			one(`name: a, containerName: c, podConditionType: d, probe: {periodSeconds: 1}`), "give exec, httpGet or tcpSocket",
		},
		"another host": {
			one(`name: a, containerName: c, podConditionType: d, probe: {tcpSocket: {port: 1, host: h}}`), "the host is always the Pod",
		},
		"a port out of range": {one(`name: a, containerName: c, podConditionType: d, probe: {tcpSocket: {port: 70000}}`), "port"},
		"no path":             {one(`name: a, containerName: c, podConditionType: d, probe: {httpGet: {port: 1}}`), "give the path"},
		"a negative number": {
			one(`name: a, containerName: c, podConditionType: d, probe: {exec: {command: [a]}, periodSeconds: -1}`), "periodSeconds",
		},
		"an empty policy": {
			one(`name: a, containerName: c, markerPolicy: [{state: Failed}], ` + ask), "give labels or annotations",
		},
		"a policy for Unknown": {
			one(`name: a, containerName: c, markerPolicy: [{state: Unknown, labels: {a: b}}], ` + ask), "Unsupported value",
		},
		"two policies of a state": {
			one(`name: a, containerName: c, markerPolicy: [{state: Failed, labels: {a: b}}, {state: Failed, labels: {a: c}}], ` + ask),
			"Duplicate value",
		},
		"one condition twice": {`{selector: {matchLabels: {a: b}}, probes: [{name: a, containerName: c, podConditionType: d, ` + ask +
			`}, {name: b, containerName: c, podConditionType: d, ` + ask + `}]}`, "Duplicate value"},
	} {
		m := parse[v1alpha1.PodProbeMarker](e, "spec: "+tc.spec)
		m.Name = "wrong"
		if err := e.Client.Create(e.Ctx, m); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	m := e.mark("good", one(`name: a, containerName: c, podConditionType: d, probe: {httpGet: {path: /, port: 1}}`))
	before := m.DeepCopy()
	m.Spec.Selector.MatchLabels["a"] = "c"
	if err := e.Client.Patch(e.Ctx, m, client.MergeFrom(before)); err == nil || !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.selector") {
		t.Errorf("another selector: %v", err)
	}
	e.Eventually("it is held until it is off the nodes", func() error {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(m), m))
		if len(m.Finalizers) != 1 || m.Finalizers[0] != keys.ProbeCleanup {
			return fmt.Errorf("finalizers %v", m.Finalizers)
		}
		return nil
	})
	e.Must(e.Client.Delete(e.Ctx, m))
	e.Eventually("a marker without Pods goes at once", func() error {
		if err := e.Client.Get(e.Ctx, client.ObjectKeyFromObject(m), m); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}
