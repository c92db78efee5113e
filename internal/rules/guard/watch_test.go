package guard

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

func base() time.Time { return time.Unix(1e9, 0) }

func after(d time.Duration) time.Time { return base().Add(d) }

func TestWhatCountsAsAFailure(t *testing.T) {
	l := limits{now: after(10 * time.Minute), begun: base(), window: 5 * time.Minute, toReady: time.Minute}
	for name, tc := range map[string]struct {
		pod  Pod
		want string
	}{
		"ready at once":                  {Pod{Since: base(), ReadyChanged: after(time.Second), Ready: true}, ""},
		"not ready yet":                  {Pod{Since: after(595 * time.Second)}, ""},
		"not ready for long":             {Pod{Since: base()}, "it was not ready for 1m0s"},
		"not ready any more":             {Pod{Since: base(), ReadyChanged: after(4 * time.Minute)}, "it was not ready for 1m0s"},
		"not ready any more, just now":   {Pod{Since: base(), ReadyChanged: after(595 * time.Second)}, ""},
		"not ready long after its start": {Pod{Since: base(), ReadyChanged: after(6 * time.Minute)}, ""},
		"a crash":                        {Pod{Since: base(), Ready: true, ExitCode: 137, ExitedAt: after(time.Minute)}, "a container exited with code 137"},
		"an end with code 0":             {Pod{Since: base(), Ready: true, ExitedAt: after(time.Minute)}, "a container ended and was started again"},
		"a crash after the window":       {Pod{Since: base(), Ready: true, ExitCode: 1, ExitedAt: after(6 * time.Minute)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := l.updatedFailed(tc.pod); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	day := after(-24 * time.Hour)
	for name, tc := range map[string]struct {
		pod  Pod
		want bool
	}{
		"ready":                     {Pod{Since: day, Ready: true, ReadyChanged: day.Add(time.Second)}, false},
		"not ready":                 {Pod{Since: day, ReadyChanged: after(-time.Second)}, true},
		"starting":                  {Pod{Since: after(-time.Second)}, false},
		"a restart before":          {Pod{Since: day, Ready: true, ReadyChanged: day, Restarts: 1, ExitedAt: after(-time.Minute)}, true},
		"a restart long before":     {Pod{Since: day, Ready: true, ReadyChanged: day, Restarts: 1, ExitedAt: after(-time.Hour)}, false},
		"a restart at its start":    {Pod{Since: day, Ready: true, ReadyChanged: day, Restarts: 1, ExitedAt: day.Add(time.Minute)}, true},
		"restarts that are unknown": {Pod{Since: day, Ready: true, ReadyChanged: day, Restarts: 2, ExitedAt: after(-time.Hour)}, true},
		"lost readiness lately":     {Pod{Since: day, Ready: true, ReadyChanged: after(-time.Minute)}, true},
		"lost readiness long ago":   {Pod{Since: day, Ready: true, ReadyChanged: after(-time.Hour)}, false},
	} {
		t.Run("an old Pod, "+name, func(t *testing.T) {
			if got := l.oldFailed(tc.pod); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestHowLongAPodMayBeNotReady(t *testing.T) {
	ready := func(seconds ...int) (out []Pod) {
		for _, s := range seconds {
			out = append(out, Pod{Since: base(), Ready: true, ReadyChanged: after(time.Duration(s) * time.Second)})
		}
		return out
	}
	for name, tc := range map[string]struct {
		old  []Pod
		want time.Duration
	}{
		"nothing known":                      {nil, 30 * time.Second},
		"fast Pods":                          {ready(1, 2, 3), 30 * time.Second},
		"slow Pods":                          {ready(40, 60, 100), 5 * time.Minute},
		"one that became ready again":        {ready(40, 60, 90000), 3 * time.Minute},
		"one that is not ready says nothing": {append(ready(20), Pod{Since: base(), ReadyChanged: after(time.Hour)}), time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ToReady(tc.old); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func oldPods(n int) (out []Pod) {
	for i := range n {
		out = append(out, Pod{Name: fmt.Sprint("old-", i), Since: after(-time.Hour), Ready: true, ReadyChanged: after(-time.Hour + 20*time.Second)})
	}
	return out
}

func TestTheGuardSaysWhy(t *testing.T) {
	st := Begin(oldPods(10), nil, base())
	if st.ReadySeconds != 60 || st.OldPods != 10 || len(st.OldFailed) > 0 {
		t.Fatalf("%+v", st)
	}
	var updated []Pod
	for i := range 3 {
		since := after(time.Duration(i) * time.Second)
		updated = append(updated, Pod{Name: fmt.Sprint("new-", i), Since: since, ExitCode: 1, ExitedAt: since.Add(time.Second), Restarts: 1})
	}
	if Watch(st, updated[:1], nil, after(time.Minute)); st.Phase != v1beta1.AnalysisRunning || len(st.Failed) != 1 {
		t.Errorf("after one Pod: %+v", st)
	}
	Watch(st, updated[1:], nil, after(2*time.Minute)) // the first one is gone by now
	if want := "3 of 3 updated Pods failed, and 0 of 10 old ones; Pod new-0: a container exited with code 1"; st.Phase != v1beta1.AnalysisFailed || st.Message != want {
		t.Errorf("%+v, want %q", st, want)
	}
	well := Begin(oldPods(10), nil, base())
	if Watch(well, oldPods(10), nil, after(time.Second)); well.Phase != v1beta1.AnalysisRunning || well.Message != "" {
		t.Errorf("Pods that do well: %+v", well)
	}
}

func TestWhenToLookAgain(t *testing.T) {
	st := Begin(oldPods(4), nil, base())
	waiting := []Pod{{Name: "a", Since: base()}, {Name: "b", Since: after(10 * time.Second)}}
	if got := Watch(st, waiting, nil, after(20*time.Second)); got != 41*time.Second {
		t.Errorf("in %s, want 41s", got)
	}
	if got := Watch(st, waiting[:1], nil, after(61*time.Second)); got != 0 || len(st.Failed) != 1 {
		t.Errorf("in %s, failed %v", got, st.Failed)
	}
	if got := Watch(st, oldPods(2), nil, after(61*time.Second)); got != 0 {
		t.Errorf("in %s while all are ready", got)
	}
}

func TestManyPods(t *testing.T) {
	st := Begin(oldPods(1000), nil, base())
	if st.OldPods != 200 {
		t.Errorf("%d old Pods", st.OldPods)
	}
	var updated []Pod
	for i := range 100 {
		p := Pod{Name: fmt.Sprint("new-", i), Since: base(), Ready: true}
		if i%4 == 0 {
			p.ExitCode, p.ExitedAt = 2, after(time.Second)
		}
		updated = append(updated, p)
	}
	Watch(st, updated, nil, after(time.Minute))
	if len(st.Failed) != 20 || !strings.HasPrefix(st.Message, "25 of 100 updated Pods failed") {
		t.Errorf("%d failed are kept: %s", len(st.Failed), st.Message)
	}
}

func TestFactsOfPods(t *testing.T) {
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(after(d)) }
	end := func(began, ended time.Duration, code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: at(began), FinishedAt: at(ended)}}
	}
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", CreationTimestamp: at(0)}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(5 * time.Second)}}
		change(p)
		return p
	}
	ready := Pod{Name: "web", Since: base(), Ready: true, ReadyChanged: after(5 * time.Second)}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want func(p *Pod)
	}{
		"as it should be": {pod(func(*corev1.Pod) {}), func(*Pod) {}},
		"a restart": {pod(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 2, LastTerminationState: end(time.Second, 2*time.Second, 3)}}
		}), func(p *Pod) { p.Restarts, p.ExitCode, p.ExitedAt = 2, 3, after(2*time.Second) }},
		"an init container that ended as it should": {pod(func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: end(time.Second, 2*time.Second, 0)}}
		}), func(*Pod) {}},
		"an init container that failed": {pod(func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: end(time.Second, 2*time.Second, 1)}}
		}), func(p *Pod) { p.ExitCode, p.ExitedAt = 1, after(2*time.Second) }},
		"a sidecar that ended": {pod(func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "side", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "side", RestartCount: 1, LastTerminationState: end(time.Second, 2*time.Second, 0)}}
		}), func(p *Pod) { p.Restarts, p.ExitedAt = 1, after(2*time.Second) }},
		"the end that an update in place brings": {pod(func(p *corev1.Pod) {
			p.Annotations = map[string]string{keys.InPlaceUpdateState: `{"revision":"r","updateTimestamp":"` + after(time.Hour).UTC().Format(time.RFC3339) + `"}`}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1, LastTerminationState: end(time.Second, time.Hour+time.Second, 143)}}
		}), func(p *Pod) { p.Since = after(time.Hour).UTC() }},
		"a crash after an update in place": {pod(func(p *corev1.Pod) {
			p.Annotations = map[string]string{keys.InPlaceUpdateState: `{"revision":"r","updateTimestamp":"` + after(time.Hour).UTC().Format(time.RFC3339) + `"}`}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 2, LastTerminationState: end(time.Hour+time.Second, time.Hour+2*time.Second, 1)}}
		}), func(p *Pod) {
			p.Since, p.Restarts, p.ExitCode, p.ExitedAt = after(time.Hour), 1, 1, after(time.Hour+2*time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := ready
			tc.want(&want)
			got, ok := Facts(tc.pod)
			if got.Since = got.Since.UTC(); !ok || fmt.Sprint(got) != fmt.Sprint(utc(want)) {
				t.Errorf("%+v, %v, want %+v", got, ok, want)
			}
		})
	}
	for name, p := range map[string]*corev1.Pod{
		"being deleted":       pod(func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(at(0)) }),
		"evicted by its node": pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
	} {
		if got, ok := Facts(p); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func utc(p Pod) Pod {
	p.Since = p.Since.UTC()
	return p
}

// app is how the Pods of an application behave.
type app struct {
	start   time.Duration // median of the time to ready
	crash   float64       // share of starts that crash once
	crashes float64       // exits in an hour
	unready float64       // times not ready in an hour
	spell   time.Duration // for how long
	neverOK float64       // share of Pods that never become ready
}

// life is what happens to a Pod.
type life struct {
	since        time.Time
	ready        time.Duration // after since; negative for never
	exits, spell []time.Duration
	lasts        time.Duration
}

// live draws the life of a Pod that exists for a time.
func (a app) live(r *rand.Rand, since time.Time, lasts time.Duration) life {
	took := time.Duration(float64(a.start) * (0.5 + r.ExpFloat64()*0.7))
	l := life{since: since, ready: took, lasts: a.spell}
	if r.Float64() < a.crash {
		l.exits = append(l.exits, took/2)
	}
	if r.Float64() < a.neverOK {
		l.ready = -1
	}
	hour := float64(time.Hour)
	for at := r.ExpFloat64() / a.crashes; at*hour < float64(lasts) && a.crashes > 0; at += r.ExpFloat64() / a.crashes {
		l.exits = append(l.exits, time.Duration(at*hour))
	}
	for at := r.ExpFloat64() / a.unready; at*hour < float64(lasts) && a.unready > 0; at += r.ExpFloat64() / a.unready {
		l.spell = append(l.spell, time.Duration(at*hour))
	}
	return l
}

// at returns what is known of the Pod at a time.
func (l life) at(name string, now time.Time) Pod {
	p := Pod{Name: name, Since: l.since}
	age := now.Sub(l.since)
	if l.ready >= 0 && age >= l.ready {
		p.Ready, p.ReadyChanged = true, l.since.Add(l.ready)
	}
	for _, s := range l.spell {
		switch {
		case !p.Ready || s < l.ready || s > age:
		case age < s+l.lasts:
			return l.ends(Pod{Name: name, Since: l.since, ReadyChanged: l.since.Add(s)}, age)
		default:
			p.ReadyChanged = l.since.Add(s + l.lasts)
		}
	}
	return l.ends(p, age)
}

func (l life) ends(p Pod, age time.Duration) Pod {
	for _, e := range l.exits {
		if e <= age {
			p.Restarts++
			p.ExitCode = 1
			if at := l.since.Add(e); at.After(p.ExitedAt) {
				p.ExitedAt = at
			}
		}
	}
	return p
}

// stops plays a release as a controller sees it, in steps with pauses, looked at every twenty seconds, with Pods that others delete in
// between, and returns after how many updated Pods the guard stops it; 0 if it does not.
func stops(r *rand.Rand, before, now app, pods int, names []string) int {
	var old, seen []Pod
	for i := range pods {
		age := time.Duration(r.Float64() * float64(48*time.Hour))
		old = append(old, before.live(r, after(-age), age).at(names[i], base()))
	}
	st := Begin(old, nil, base())
	var lives []life
	var gone [64]bool
	for look := range 24 {
		at := after(time.Duration(look) * 20 * time.Second)
		if look%4 == 0 && len(lives) < pods {
			for range max(pods/6, 1) {
				lives = append(lives, now.live(r, at, 11*time.Minute))
			}
		}
		seen = seen[:0]
		for i, l := range lives {
			if !gone[i] {
				seen = append(seen, l.at(names[i], at))
			}
		}
		if Watch(st, seen, nil, at); st.Phase == v1beta1.AnalysisFailed {
			return len(lives)
		}
		if len(lives) > 0 && r.IntN(20) == 0 {
			gone[r.IntN(len(lives))] = true
		}
	}
	return 0
}

// TestReleasesAsAControllerSeesThem plays good releases of several applications, 10,000 of the hardest, from what is known of their Pods to
// the verdict. Less than one in a hundred is stopped. Bad ones are stopped early.
func TestReleasesAsAControllerSeesThem(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var names []string
	for i := range 64 {
		names = append(names, fmt.Sprint("web-", i))
	}
	const hardest = "one start in three crashes"
	apps := map[string]app{
		"quiet":                   {start: 3 * time.Second},
		"slow to start":           {start: time.Minute},
		hardest:                   {start: 5 * time.Second, crash: 0.33},
		"each start crashes once": {start: 5 * time.Second, crash: 1},
		"crashes once an hour":    {start: 5 * time.Second, crashes: 1},
		"not ready at times":      {start: 5 * time.Second, unready: 2, spell: 50 * time.Second},
		"all of it":               {start: 20 * time.Second, crash: 0.1, crashes: 0.2, unready: 1, spell: 2 * time.Minute, neverOK: 0.03},
	}
	for name, a := range apps {
		stopped, releases := 0, releases/5
		if name == hardest {
			releases *= 5
		}
		for range releases {
			if stops(r, a, a, 3+r.IntN(12), names) > 0 {
				stopped++
			}
		}
		t.Logf("%s: %.2f %% of good releases stopped", name, 100*float64(stopped)/float64(releases))
		if float64(stopped)/float64(releases) >= ErrorRate {
			t.Errorf("%s: %d of %d good releases stopped", name, stopped, releases)
		}
	}
	for name, bad := range map[string]app{
		"every start crashes": {start: 3 * time.Second, crash: 1},
		"never ready":         {start: 3 * time.Second, neverOK: 1},
	} {
		caught, pods := 0, 0
		for range releases / 10 {
			if n := stops(r, app{start: 3 * time.Second}, bad, 12, names); n > 0 {
				caught, pods = caught+1, pods+n
			}
		}
		t.Logf("%s: %d of %d stopped, after %.1f of 12 Pods", name, caught, releases/10, float64(pods)/float64(max(caught, 1)))
		if caught < releases/10 || pods > 5*caught {
			t.Errorf("%s: %d of %d stopped, after %d Pods in all", name, caught, releases/10, pods)
		}
	}
}
