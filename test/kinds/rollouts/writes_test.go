package rollouts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/test/kit/audit"
)

// TestWritesOfARelease: a release in five steps costs 43 writes, and one for the labels of each Pod that it updates.
func TestWritesOfARelease(t *testing.T) {
	e := newSerialEnv(t)
	const pods, most = 60, 45
	e.start(fmt.Sprintf(cloneSet, pods, ""), rolloutOf(ofCloneSet, steps("10%", "30%", "50%", "80%", "100%")))
	began := time.Now()
	e.setImage("v2")
	for i, updated := range []int{6, 18, 30, 48} {
		e.paused(int32(i)+1, "v2", updated)
		e.approve()
	}
	e.over("v2", pods, corev1.ConditionTrue)
	asked, err := audit.Read(shared.AuditLog(), audit.Query{Agent: "kruise-rollout", Namespace: e.Namespace, From: began})
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
