package ondelete

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// daemon returns a Pod by a word: old or new, and whether it is ready, runs, is pending or on its way out.
func daemon(name, word string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"version": word[:3]}}}
	p.Status.Phase = corev1.PodRunning
	switch word[4:] {
	case "ready":
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	case "pending":
		p.Status.Phase = corev1.PodPending
	case "going":
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return p
}

func isUpdated(p *corev1.Pod) bool { return p.Labels["version"] == "new" }

func daemons(words ...string) (pods []*corev1.Pod) {
	for i, word := range words {
		pods = append(pods, daemon(fmt.Sprint(i), word))
	}
	return pods
}

func names(pods []*corev1.Pod) string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return strings.Join(out, " ")
}

func TestNext(t *testing.T) {
	cheap := daemons("old ready", "old ready", "old ready")
	cheap[2].Annotations = map[string]string{corev1.PodDeletionCost: "-5"}
	young := daemons("old ready", "old ready", "old ready")
	young[1].CreationTimestamp = metav1.Unix(100, 0)
	for name, tc := range map[string]struct {
		batch Batch
		pods  []*corev1.Pod
		want  string
	}{
		"one at a time":                           {Batch{3, 0, 1}, daemons("old ready", "old ready", "old ready"), "0: 2 more Pods are to be updated, and 0 are out of service, of which there may be 1"},
		"as many as the batch says":               {Batch{3, 1, 5}, daemons("old ready", "old ready", "old ready"), "0 1"},
		"a Pod that gets ready is waited for":     {Batch{3, 0, 1}, daemons("new running", "old ready", "old ready"), ": 2 more Pods are to be updated, and 1 are out of service, of which there may be 1"},
		"a Pod on its way out is waited for":      {Batch{3, 0, 1}, daemons("old going", "old ready", "old ready"), ": 2 more Pods are to be updated, and 1 are out of service, of which there may be 1"},
		"a Pod on its way out is never chosen":    {Batch{3, 0, 3}, daemons("old going", "old ready", "old ready"), "1 2"},
		"a Pod that is missing is out of service": {Batch{3, 0, 1}, daemons("old ready", "old ready"), ": 2 more Pods are to be updated, and 1 are out of service, of which there may be 1"},
		"old Pods that are not ready are free":    {Batch{4, 0, 1}, daemons("old ready", "old running", "old pending", "new running"), "2 1: 1 more Pods are to be updated, and 1 are out of service, of which there may be 1"},
		"the cheap one goes first":                {Batch{3, 2, 1}, cheap, "2"},
		"the young one goes first":                {Batch{3, 2, 1}, young, "1"},
		"nothing is left to do":                   {Batch{3, 1, 1}, daemons("new ready", "new ready", "old ready"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			gone, wait := Next(tc.batch, tc.pods, isUpdated, pod.IsReady)
			got := names(gone)
			if wait != "" {
				got += ": " + wait
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMaxUnavailable(t *testing.T) {
	for name, tc := range map[string]struct {
		value   *intstr.IntOrString
		desired int32
		want    int32
	}{
		"unset is 1":               {nil, 10, 1},
		"a number":                 {ptr.To(intstr.FromInt32(3)), 10, 3},
		"a percentage rounds down": {ptr.To(intstr.FromString("25%")), 10, 2},
		"it is never 0":            {ptr.To(intstr.FromString("5%")), 10, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := MaxUnavailable(tc.value, tc.desired); err != nil || got != tc.want {
				t.Errorf("%d, %v, want %d", got, err, tc.want)
			}
		})
	}
	if _, err := MaxUnavailable(ptr.To(intstr.FromString("x")), 10); err == nil {
		t.Error("what is no number is read")
	}
}

// TestABatchComesToItsEnd plays the native controller, with Pods that fail and recover: as many stay old as the batch says, and no more ready
// Pods are deleted at a time than maxUnavailable leaves.
func TestABatchComesToItsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 15).Draw(t, "nodes")
		b := Batch{Desired: int32(n), Keep: int32(rapid.IntRange(0, n).Draw(t, "keep")), MaxUnavailable: int32(rapid.IntRange(1, 5).Draw(t, "unavailable"))}
		pods := make([]*corev1.Pod, n)
		for i := range pods {
			pods[i] = daemon(fmt.Sprint(i), rapid.SampledFrom([]string{"old ready", "old ready", "old running", "old pending"}).Draw(t, "Pod"))
		}
		for round := 0; ; round++ {
			gone, wait := Next(b, pods, isUpdated, pod.IsReady)
			old, out, taken := 0, 0, 0
			for _, p := range pods {
				isReady := len(p.Status.Conditions) > 0
				if !isUpdated(p) {
					old++
				} else if !isReady {
					out++
				}
			}
			for _, p := range gone {
				if isUpdated(p) {
					t.Fatalf("%s is updated already", p.Name)
				}
				if len(p.Status.Conditions) > 0 {
					taken++
				}
			}
			if taken > 0 && out+taken > int(b.MaxUnavailable) {
				t.Fatalf("%d Pods are out of service, %d more are taken, and %d may be", out, taken, b.MaxUnavailable)
			}
			if old-len(gone) < min(int(b.Keep), old) {
				t.Fatalf("%d of %d old Pods go, and %d are to stay", len(gone), old, b.Keep)
			}
			if len(gone) == 0 && wait == "" {
				if old > int(b.Keep) {
					t.Fatalf("%d Pods are old, want %d", old, b.Keep)
				}
				return
			}
			if round > 20*n {
				t.Fatalf("it does not end: %s", wait)
			}
			for i, p := range pods {
				switch {
				case strings.Contains(" "+names(gone)+" ", " "+p.Name+" "):
					pods[i] = daemon(p.Name, "new running")
				case isUpdated(p) && rapid.Bool().Draw(t, "gets ready") || round > 10*n:
					pods[i] = daemon(p.Name, p.Labels["version"]+" ready")
				}
			}
		}
	})
}

func TestControl(t *testing.T) {
	want := Control{Partition: "3", Revision: "5d4c", Paused: true}
	const text = `{"partition":"3","batch-revision":"5d4c","paused":true}`
	if diff := cmp.Diff(text, want.String()); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	if got, keep, err := ParseControl(text); err != nil || keep != 3 || got != want {
		t.Errorf("read %+v, %d, %v", got, keep, err)
	}
	for _, bad := range []string{"", "{}", "[]", `{"partition":"-1"}`, `{"partition":"50%"}`} {
		if _, _, err := ParseControl(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
