package disruption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
)

func TestPrune(t *testing.T) {
	terminating := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }
	finished := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	young := func(p *corev1.Pod) { p.CreationTimestamp = ago(3 * time.Second) }
	entry := func(age time.Duration) map[string]metav1.Time { return map[string]metav1.Time{"p": ago(age)} }
	cases := map[string]struct {
		disrupted, unavailable map[string]metav1.Time
		pods                   []*corev1.Pod
		live                   bool
		gone                   []string
		want                   Pruned
	}{
		"a deletion that is still to come": {
			disrupted: entry(5 * time.Second), pods: []*corev1.Pod{podNamed("p")},
			want: Pruned{Ledger: Ledger{Disrupted: entry(5 * time.Second)}, Recheck: 15 * time.Second},
		},
		"a deletion that did not come": {
			disrupted: entry(20 * time.Second), pods: []*corev1.Pod{podNamed("p")}, want: Pruned{Overdue: []string{"p"}, Expired: []string{"p"}},
		},
		"a deletion that came":                        {disrupted: entry(time.Second), pods: []*corev1.Pod{podNamed("p", terminating)}},
		"a Pod that has ended":                        {disrupted: entry(time.Second), pods: []*corev1.Pod{podNamed("p", finished)}},
		"a Pod that is gone":                          {disrupted: entry(time.Second), unavailable: entry(time.Second)},
		"another Pod has the name":                    {disrupted: entry(15 * time.Second), pods: []*corev1.Pod{podNamed("p", young)}},
		"a clock that is a little behind":             {disrupted: entry(6 * time.Second), pods: []*corev1.Pod{podNamed("p", young)}, want: Pruned{Ledger: Ledger{Disrupted: entry(6 * time.Second)}, Recheck: 14 * time.Second}},
		"a clock that is a little ahead":              {unavailable: entry(-2 * time.Second), pods: []*corev1.Pod{podNamed("p")}, want: Pruned{Ledger: Ledger{Unavailable: entry(-2 * time.Second)}, Recheck: 12 * time.Second}},
		"a clock that is far ahead":                   {unavailable: entry(-time.Hour), pods: []*corev1.Pod{podNamed("p")}, want: Pruned{Ledger: Ledger{Unavailable: entry(0)}, Recheck: 10 * time.Second}},
		"an update that may not be seen":              {unavailable: entry(4 * time.Second), pods: []*corev1.Pod{podNamed("p")}, want: Pruned{Ledger: Ledger{Unavailable: entry(4 * time.Second)}, Recheck: 6 * time.Second}},
		"an update that has had its time":             {unavailable: entry(10 * time.Second), pods: []*corev1.Pod{podNamed("p")}, want: Pruned{Expired: []string{"p"}}},
		"the first to end is looked at":               {disrupted: entry(time.Second), unavailable: entry(3 * time.Second), pods: []*corev1.Pod{podNamed("p")}, want: Pruned{Ledger: Ledger{Disrupted: entry(time.Second), Unavailable: entry(3 * time.Second)}, Recheck: 7 * time.Second}},
		"a Pod that is gone, by a live read":          {live: true, disrupted: entry(time.Second), want: Pruned{Ledger: Ledger{Disrupted: entry(time.Second)}, Recheck: 19 * time.Second}},
		"a Pod that is long gone, by a live read":     {live: true, disrupted: entry(time.Minute), want: Pruned{Overdue: []string{"p"}, Expired: []string{"p"}}},
		"another Pod has the name, by a live read":    {live: true, disrupted: entry(15 * time.Second), pods: []*corev1.Pod{podNamed("p", young)}},
		"the cache still has a Pod that is gone":      {gone: []string{"p"}, disrupted: entry(5 * time.Second), want: Pruned{Ledger: Ledger{Disrupted: entry(5 * time.Second)}, Recheck: 15 * time.Second}},
		"the cache still has a Pod that is long gone": {gone: []string{"p"}, disrupted: entry(time.Minute), want: Pruned{Ledger: Ledger{Disrupted: entry(time.Minute)}}},
		"nothing to prune, nothing to wait":           {pods: []*corev1.Pod{podNamed("p")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Ledger{Disrupted: tc.disrupted, Unavailable: tc.unavailable}.Prune(Seen{Pods: tc.pods, Live: tc.live, Gone: tc.gone, Now: noon})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLedger(t *testing.T) {
	at := noon.Add(700 * time.Millisecond)
	empty := Ledger{}
	full := empty.With("gone", v1beta1.PubDeleteOperation, at).With("out", v1beta1.PubEvictOperation, at).
		With("new", v1beta1.PubUpdateOperation, at).With("big", v1beta1.PubResizeOperation, at)
	want := Ledger{
		Disrupted:   map[string]metav1.Time{"gone": ago(0), "out": ago(0)},
		Unavailable: map[string]metav1.Time{"new": ago(0), "big": ago(0)},
	}
	if diff := cmp.Diff(want, full); diff != "" || empty.Len() != 0 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	later := func(p *corev1.Pod) { p.CreationTimestamp = ago(-6 * time.Second) }
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"one that may go":             {podNamed("gone"), true},
		"one that may be updated":     {podNamed("new"), true},
		"a later one of the name":     {podNamed("gone", later), false},
		"one that nobody asked about": {podNamed("other"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := full.Holds(tc.pod); got != tc.want {
				t.Errorf("held: %v", got)
			}
		})
	}
	many := Ledger{Disrupted: map[string]metav1.Time{}, Unavailable: map[string]metav1.Time{"u": ago(0)}}
	for i := range MostEntries - 1 {
		many.Disrupted[string(rune(i))] = ago(0)
	}
	if many.IsFull() {
		t.Errorf("%d entries are too many", many.Len())
	}
	if many = many.With("one more", v1beta1.PubDeleteOperation, at); !many.IsFull() {
		t.Errorf("%d entries are not too many", many.Len())
	}
}

func TestAvailable(t *testing.T) {
	image := func(image string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Image = image }
	}
	note := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations[key] = value }
	}
	begun := note(keys.InPlaceUpdateState, `{"updateImages":true,"lastContainerStatuses":{"app":{"imageID":"web@sha256:aa"}}}`)
	sidecars := note(keys.SidecarSetInPlaceUpdateState, `{"log":{"updateTimestamp":"2020-01-01T00:00:00Z","lastContainerStatuses":{"app":{"imageID":"web@sha256:aa"}}}}`)
	followed := func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].Image, p.Status.ContainerStatuses[0].ImageID, p.Status.ContainerStatuses[0].ContainerID = p.Spec.Containers[0].Image, "web@sha256:bb", "c2"
	}
	cases := map[string]struct {
		changes []func(*corev1.Pod)
		want    bool
	}{
		"ready":                                  {nil, true},
		"not ready":                              {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Status.Conditions = nil }}, false},
		"pending":                                {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }}, false},
		"ended":                                  {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }}, false},
		"leaving":                                {[]func(*corev1.Pod){func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }}, false},
		"marked as unavailable":                  {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Labels[keys.UnavailablePrefix+"drain"] = "" }}, false},
		"its lifecycle alone says nothing":       {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Labels[keys.LifecycleState] = "PreparingDelete" }}, true},
		"its image was changed in place":         {[]func(*corev1.Pod){image("web:2"), begun}, false},
		"its image was changed, and it followed": {[]func(*corev1.Pod){image("web:2"), begun, followed}, true},
		"an update is planned":                   {[]func(*corev1.Pod){note(keys.InPlaceUpdateGrace, `{"graceSeconds":60}`)}, false},
		"containers of the next batch are to follow":   {[]func(*corev1.Pod){note(keys.InPlaceUpdateState, `{"nextContainerImages":{"app":"web:2"}}`)}, false},
		"a sidecar was changed in place, long ago":     {[]func(*corev1.Pod){image("web:2"), sidecars}, false},
		"a sidecar was changed in place, and followed": {[]func(*corev1.Pod){image("web:2"), sidecars, followed}, true},
		"a digest that it runs":                        {[]func(*corev1.Pod){image("web@sha256:aa")}, true},
		"a digest that it does not run":                {[]func(*corev1.Pod){image("web@sha256:cc")}, false},
		"a digest that the runtime knows by another":   {[]func(*corev1.Pod){image("web@sha256:cc"), func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Image = "web@sha256:cc" }}, true},
		"records that can't be read say nothing":       {[]func(*corev1.Pod){note(keys.InPlaceUpdateState, "{"), note(keys.SidecarSetInPlaceUpdateState, "{")}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Available(podNamed("p", tc.changes...)); got != tc.want {
				t.Errorf("available: %v", got)
			}
		})
	}
}

func TestAnnotations(t *testing.T) {
	for text, want := range map[string]bool{"true": true, "1": true, "T": true, "": false, "false": false, "yes": false} {
		if got := IsFree(podNamed("p", func(p *corev1.Pod) { p.Annotations[keys.NoProtect] = text })); got != want {
			t.Errorf("%q frees the Pod: %v", text, got)
		}
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"none":                {nil, ""},
		"both":                {map[string]string{keys.RelatedBudget: "new", keys.RelatedBudgetOld: "old"}, "new"},
		"the first spelling":  {map[string]string{keys.RelatedBudgetOld: "old"}, "old"},
		"an empty second one": {map[string]string{keys.RelatedBudget: "", keys.RelatedBudgetOld: "old"}, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Related(tc.annotations); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
