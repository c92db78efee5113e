package rollouts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/audit"
)

// TestWritesOfARelease: a release in five steps costs 37 writes, and one for the labels of each Pod that it updates.
func TestWritesOfARelease(t *testing.T) {
	e := newEnv(t)
	const pods, most = 60, 39
	e.start(fmt.Sprintf(cloneSet, pods, ""), rolloutOf(ofCloneSet, steps("10%", "30%", "50%", "80%", "100%")))
	began := time.Now()
	e.setImage("v2")
	for i, updated := range []int{6, 18, 30, 48} {
		e.paused(int32(i)+1, "v2", updated)
		e.approve()
	}
	e.over("v2", pods, corev1.ConditionTrue)
	asked, err := audit.Read(e.Site.AuditLog(), audit.Query{Agent: "kruise-rollout", Namespace: e.Namespace, From: began})
	e.Must(err)
	t.Logf("%d writes, %d of them of Pods: %v", asked.Writes(), asked.PodWrites, asked.Counts)
	records := 0
	for request, n := range asked.Counts {
		if strings.Contains(request, "rollouthistories") {
			records += n
		}
	}
	// Counts that are under way are stored every ten seconds, by both controllers.
	late := 2 * int(time.Since(began)/(10*time.Second))
	if others := asked.Writes() - asked.PodWrites - records; others > most+late || asked.PodWrites > pods || records > 2 {
		t.Errorf("%d writes, %d of %d Pods and %d of records; want %d, one for each Pod and two at most: %v",
			others, asked.PodWrites, pods, records, most+late, asked.Counts)
	}
}

// TestNothingIsWrittenAtRest: neither a Rollout without a release nor one whose step waits for an approval, with routes that lead to its Pods,
// is written to, nor is anything that belongs to it; with as many kinds of workloads as there are mechanisms.
func TestNothingIsWrittenAtRest(t *testing.T) {
	const step, quiet = "{replicas: 20%, traffic: 20%}, {replicas: 100%}", 15 * time.Second
	idle := newDeploymentEnv(t, 3, [2]string{"25%", "25%"}, steps("1", "100%")).env
	rest := []*env{idle}
	begin := workloads()
	begin["second Deployment"] = func(e *env, steps string) { beginCanary(e, 5, steps, byIngress) }
	begin["DaemonSet"] = func(e *env, _ string) { beginDaemons(e) }
	for kind, start := range begin {
		e := &env{idle.In(idle.NewNamespace(nil))}
		start(e, step)
		e.setImageOf(kind, "v2")
		e.Eventually(kind+" waits at a step", func() error { return e.isAt(1, v1beta1.StepStatePaused) })
		rest = append(rest, e)
	}
	idle.AtRest(11*time.Second, "what is stored", func() string { // counts are written ten seconds after they were seen
		out := ""
		for _, e := range rest {
			var all v1beta1.RolloutList
			e.Must(e.List(e.Ctx, &all, client.InNamespace(e.Namespace)))
			var batches v1beta1.BatchReleaseList
			e.Must(e.List(e.Ctx, &batches, client.InNamespace(e.Namespace)))
			for i := range all.Items {
				out += all.Items[i].ResourceVersion + " "
			}
			for i := range batches.Items {
				out += batches.Items[i].ResourceVersion + " "
			}
		}
		return out
	})
	began := time.Now()
	time.Sleep(quiet)
	for _, e := range rest {
		asked, err := audit.Read(e.Site.AuditLog(), audit.Query{Agent: "kruise-rollout", Namespace: e.Namespace, From: began})
		e.Must(err)
		if n := asked.Writes(); n > 0 {
			t.Errorf("%d writes at rest: %v\n%s", n, asked.Counts, e.describe())
		}
	}
}
