package sidecar

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

var now = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// targetOf is a SidecarSet of one cold sidecar with the image log:2.
func targetOf(t *testing.T, strategy string) Target {
	t.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "log"}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "log", Image: "log:2"}}}
	if err := yaml.UnmarshalStrict([]byte(strategy), &set.Spec.UpdateStrategy); err != nil {
		t.Fatal(err)
	}
	target, err := NewTarget(set, "log-2")
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// conduct is how a Pod is: its sidecars are old or new, or differ in more than images, and it is ready, not ready, or on its way.
type conduct string

const (
	old      conduct = "old"
	oldDown  conduct = "old, not ready"
	oldStuck conduct = "old, a broken update"
	other    conduct = "other than images"
	fresh    conduct = "new"
	freshing conduct = "new, on its way"
	down     conduct = "new, not ready"
	polite   conduct = "old, its workload updates it"
)

// podOf is a Pod with the sidecar, named by its number.
func podOf(target Target, i int, c conduct) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i), Namespace: "default", Generation: 1, Labels: map[string]string{"number": fmt.Sprint(i)}}}
	p.Spec.NodeName = "node"
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}, {Name: "log", Image: "log:1"}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ObservedGeneration: 1}
	ready := corev1.ConditionTrue
	log := corev1.ContainerStatus{Name: "log", Image: "log:1", ImageID: "sha256:1", ContainerID: "c1", Ready: true}
	record := Record{SidecarSetName: "log", Hash: "older"}
	switch c {
	case fresh, freshing, down:
		record.Hash = target.Hashes.Full
		p.Spec.Containers[1].Image = "log:2"
		if c != freshing {
			log.Image, log.ImageID, log.ContainerID = "log:2", "sha256:2", "c2"
		}
	}
	switch c {
	case oldDown, down, oldStuck:
		ready, log.Ready = corev1.ConditionFalse, false
	}
	if c == freshing || c == oldStuck {
		setState(p, "log", State{LastContainerStatuses: map[string]pub.InPlaceUpdateContainerStatus{"log": {ImageID: "sha256:1", ContainerID: "c1", Image: "log:1"}}})
	}
	if c == oldStuck {
		p.Spec.Containers[1].Image = "log:bad"
	}
	if c == polite {
		p.Labels[keys.LifecycleState] = "Updating"
		p.Annotations = map[string]string{keys.LifecycleTimestamp: now.Add(-time.Minute).Format(time.RFC3339)}
	}
	SetRecord(p, keys.SidecarSetHash, record)
	without := Record{SidecarSetName: "log", Hash: target.Hashes.WithoutImage}
	if c == other {
		without.Hash = "other"
	}
	SetRecord(p, keys.SidecarSetHashWithoutImage, without)
	AddInjected(p, "log")
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Ready: true}, log}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	return p
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		strategy string
		pods     []conduct
		want     string // the Pods to update, and the number of those that are kept, wait for the budget, wait, and can't be updated
	}{
		"two of five at a time":                       {"{maxUnavailable: 2, partition: 1}", []conduct{old, old, old, old, old}, "0 1 kept 1 over 2 waiting 0 stuck 0"},
		"one more once one is back":                   {"{maxUnavailable: 2, partition: 1}", []conduct{fresh, freshing, old, old, old}, "2 kept 1 over 1 waiting 0 stuck 0"},
		"none while both are under way":               {"{maxUnavailable: 2}", []conduct{freshing, down, old, old}, "kept 0 over 2 waiting 0 stuck 0"},
		"Pods that are not ready cost nothing":        {"{maxUnavailable: 1}", []conduct{old, oldDown, oldDown, old, old}, "1 2 0 kept 0 over 2 waiting 0 stuck 0"},
		"nothing may be unavailable":                  {"{maxUnavailable: 0}", []conduct{old, oldDown}, "1 kept 0 over 1 waiting 0 stuck 0"},
		"a broken update is mended before the others": {"{maxUnavailable: 1}", []conduct{oldStuck, old, old}, "0 kept 0 over 2 waiting 0 stuck 0"},
		"a small percentage is one Pod":               {`{maxUnavailable: "5%"}`, []conduct{old, old, old}, "0 kept 0 over 2 waiting 0 stuck 0"},
		"nothing said is one Pod":                     {"{}", []conduct{old, old}, "0 kept 0 over 1 waiting 0 stuck 0"},
		"a percentage keeps, rounded up":              {`{maxUnavailable: 10, partition: "25%"}`, []conduct{old, old, old, old, old, old, old, old, old, old}, "0 1 2 3 4 5 6 kept 3 over 0 waiting 0 stuck 0"},
		"a percentage below 100 moves one":            {`{maxUnavailable: 10, partition: "95%"}`, []conduct{old, old, old, old, old, old, old, old, old, old}, "0 kept 9 over 0 waiting 0 stuck 0"},
		"a partition of all":                          {`{maxUnavailable: 10, partition: "100%"}`, []conduct{old, old}, "kept 2 over 0 waiting 0 stuck 0"},
		"Pods that can't move count as kept":          {"{maxUnavailable: 9, partition: 5}", []conduct{other, other, other, old, old, old, old, old, old, old}, "3 4 5 6 7 kept 2 over 0 waiting 0 stuck 3"},
		"Pods whose workload updates them wait":       {"{maxUnavailable: 9}", []conduct{polite, old}, "1 kept 0 over 0 waiting 1 stuck 0"},
		"only selected Pods":                          {`{maxUnavailable: 9, selector: {matchLabels: {number: "1"}}}`, []conduct{old, old, old}, "1 kept 0 over 0 waiting 0 stuck 0"},
		"by priority":                                 {`{maxUnavailable: 2, priorityStrategy: {weightPriority: [{weight: 9, matchSelector: {matchLabels: {number: "2"}}}]}}`, []conduct{old, old, old}, "2 0 kept 0 over 1 waiting 0 stuck 0"},
	} {
		t.Run(name, func(t *testing.T) {
			target := targetOf(t, tc.strategy)
			var all []PodStatus
			for i, c := range tc.pods {
				p := podOf(target, i, c)
				if !target.IsHeldBy(p) {
					t.Fatalf("%s does not hold the sidecars", p.Name)
				}
				all = append(all, target.Classify(p, now))
			}
			d, err := target.Decide(all)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range d.Update {
				names = append(names, strings.TrimPrefix(s.Pod.Name, "web-"))
			}
			got := strings.TrimSpace(fmt.Sprintf("%s kept %d over %d waiting %d stuck %d", strings.Join(names, " "), len(d.Kept), len(d.OverBudget), len(d.Waiting), len(d.NotUpgradable)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPolitenessEnds(t *testing.T) {
	target := targetOf(t, "{}")
	s := target.Classify(podOf(target, 0, polite), now)
	if s.Waits == "" || s.Recheck != 4*time.Minute {
		t.Errorf("waits %q, rechecked after %s", s.Waits, s.Recheck)
	}
	if s = target.Classify(podOf(target, 0, polite), now.Add(s.Recheck)); s.Waits != "" {
		t.Errorf("after five minutes it still waits: %s", s.Waits)
	}
}

func TestUpgradeWritesOnce(t *testing.T) {
	target := targetOf(t, "{}")
	p := podOf(target, 0, old)
	what := target.Upgrade(p, now)
	if what != "log log:1 -> log:2" || p.Spec.Containers[0].Image != "app:1" {
		t.Errorf("what: %s", what)
	}
	want := map[string]State{"log": {
		Revision: target.Hashes.Full, UpdateTimestamp: metav1.NewTime(now),
		LastContainerStatuses: map[string]pub.InPlaceUpdateContainerStatus{"log": {ImageID: "sha256:1", ContainerID: "c1", Image: "log:1"}},
	}}
	var got map[string]State
	if err := json.Unmarshal([]byte(p.Annotations[keys.SidecarSetInPlaceUpdateState]), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	s := target.Classify(p, now)
	if !s.Updated || s.IsServing() {
		t.Errorf("updated %t, serving %t; want it updated and on its way", s.Updated, s.IsServing())
	}
}

// TestScatterByEveryValue: a star stands for every value that the Pods have.
func TestScatterByEveryValue(t *testing.T) {
	target := targetOf(t, `{maxUnavailable: 9, scatterStrategy: [{key: zone, value: "*"}]}`)
	var all []PodStatus
	for i := range 8 {
		p := podOf(target, i, old)
		p.Labels["zone"] = []string{"a", "b"}[i/4]
		all = append(all, target.Classify(p, now))
	}
	d, err := target.Decide(all)
	if err != nil {
		t.Fatal(err)
	}
	var zones []string
	for _, s := range d.Update {
		zones = append(zones, s.Pod.Labels["zone"])
	}
	if first := zones[:4]; !slices.Contains(first, "a") || !slices.Contains(first, "b") {
		t.Errorf("zones are updated in the order %v", zones)
	}
}

// TestWorkloadsWaitForSidecars, but not for ever.
func TestWorkloadsWaitForSidecars(t *testing.T) {
	target := targetOf(t, "{}")
	p := podOf(target, 0, old)
	if why, _ := RecentlyUpdating(p, now); why != "" {
		t.Errorf("a Pod at rest: %s", why)
	}
	target.Upgrade(p, now)
	if why, wait := RecentlyUpdating(p, now.Add(time.Minute)); why == "" || wait != 4*time.Minute {
		t.Errorf("a Pod whose sidecar restarts: %q for %s", why, wait)
	}
	if why, _ := RecentlyUpdating(p, now.Add(5*time.Minute)); why != "" {
		t.Errorf("after five minutes: %s", why)
	}
	p.Status.ContainerStatuses[1] = corev1.ContainerStatus{Name: "log", Image: "log:2", ImageID: "sha256:2", ContainerID: "c2"}
	if why, _ := RecentlyUpdating(p, now.Add(time.Minute)); why != "" {
		t.Errorf("a Pod whose sidecar has restarted: %s", why)
	}
}

// TestNotesOfPods: an update whose second write was lost is made good, and what is true is left alone.
func TestNotesOfPods(t *testing.T) {
	target := targetOf(t, "{}")
	exists := func(name string) bool { return name == "log" }
	stale := func(p *corev1.Pod) bool {
		s := target.Classify(p, now)
		return s.IsConditionStale("log", exists)
	}
	p := podOf(target, 0, old)
	if stale(p) || stale(podOf(target, 0, fresh)) {
		t.Error("a Pod that was never updated owes a note")
	}
	target.Upgrade(p, now)
	if !stale(p) {
		t.Error("an updated Pod without a note owes none")
	}
	if !SetUpgradable(p, "log", true, At{now, exists}) || stale(p) || SetUpgradable(p, "log", true, At{now, exists}) {
		t.Error("a note that is written is not enough")
	}
	SetUpgradable(p, "log", false, At{now, exists})
	if !stale(p) {
		t.Error("a Pod says that it can't be updated, and was")
	}
	at := At{now, func(string) bool { return true }}
	AddInjected(p, "gone")
	SetUpgradable(p, "gone", true, at)
	SetUpgradable(p, "log", true, at)
	if !stale(p) {
		t.Error("a note of a SidecarSet that is gone stays")
	}
}
