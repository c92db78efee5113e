package promises

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/sim/invariant"
)

// stuck is the number of clusters that NameBlockers tries.
const stuck = 300

// NameBlockers lets clusters come to rest in which hooks stay unanswered and an image never starts, and checks that a workload with a Pod
// out of service says in its condition Waiting which one, and that what it says is true. The function returns the condition's status and
// message.
func (s Suite) NameBlockers(t *testing.T, waiting func(client.Object) (status, message string)) {
	t.Helper()
	ctx := logr.NewContext(t.Context(), logr.Discard())
	found := 0
	for seed := range int64(stuck) {
		w := s.World(seed)
		w.Rig.Others = nil
		w.Rig.Kubelet.IsBad = func(image string) bool { return image == "app:v3" }
		w.Rig.Turmoil(ctx, turmoil)
		w.Rig.LandAll()
		// What fails is tried again for ever, and seldom at last.
		if err := w.Rig.Settle(ctx, 10*time.Minute); err != nil {
			w.problems = append(w.problems, err.Error())
		}
		owner := w.scenario.Owner()
		if owner == nil || owner.GetDeletionTimestamp() != nil {
			continue
		}
		status, message := waiting(owner)
		if status == string(metav1.ConditionTrue) {
			found++
		}
		for _, problem := range append(w.problems, w.judgeWaiting(owner, status, message)...) {
			t.Errorf("KRUISE_SEED=%d: %s", seed, problem)
			if os.Getenv("KRUISE_SEED") == fmt.Sprint(seed) {
				t.Log(w.Story())
			}
		}
	}
	if found < stuck/10 {
		t.Errorf("only %d of %d workloads wait for anything: too few to tell", found, stuck)
	}
}

// judgeWaiting returns what is wrong with a condition Waiting of a workload at rest.
func (w *World) judgeWaiting(owner client.Object, status, message string) (problems []string) {
	named, _, _ := strings.Cut(message, ": ")
	isTrue := false
	for _, p := range (User{Cluster: w.Cluster}).Pods() {
		if !metav1.IsControlledBy(p, owner) || invariant.Serves(p, w.scenario.MinReadySeconds(), w.Cluster.Now()) {
			continue
		}
		isTrue = isTrue || p.Name == named
		counts := p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed && p.Labels["app"] != "stray"
		if counts && status != string(metav1.ConditionTrue) {
			problems = append(problems, "at rest, "+p.Name+" is out of service, and the status does not say that it is waited for")
		}
	}
	if status == string(metav1.ConditionTrue) && !isTrue {
		problems = append(problems, "at rest, the status says what is not so: "+message)
	}
	return problems
}
