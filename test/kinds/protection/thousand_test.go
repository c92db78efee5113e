package protection

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/kit/audit"
)

// aThousandPods of a budget that lets none of them go are deleted with their namespace. The API server asks about each, and the answers take
// neither long nor a request: they come from what the managers know already. Nobody carries out the deletion of a namespace in this cluster, so
// the test deletes the Pods as its controller does.
func aThousandPods(b *bench) {
	const pods, workers = 1000, 10
	errs := make([]error, workers)
	var making sync.WaitGroup
	for worker := range workers {
		making.Go(func() { errs[worker] = b.makePods(worker, pods, workers) })
	}
	making.Wait()
	for _, err := range errs {
		b.Must(err)
	}
	b.budget(0, "{maxUnavailable: 0, protectTotalReplicas: 1000}")
	one := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "web-0"}}
	b.Must(refusedBy(b.Client.Delete(b.Ctx, one, client.DryRunAll), "DELETE"))
	b.Must(b.Client.Delete(b.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}))
	b.Eventually("all managers know that the namespace is being deleted", func() error {
		for range 20 {
			if err := b.Client.Delete(b.Ctx, one, client.DryRunAll); err != nil {
				return err
			}
		}
		return nil
	})
	began := time.Now()
	callsBefore, secondsBefore := b.calls()
	b.Eventually("all Pods are gone", func() error {
		if err := b.Client.DeleteAllOf(b.Ctx, &corev1.Pod{}, client.InNamespace(b.namespace)); err != nil {
			return err
		}
		var left corev1.PodList
		b.Must(b.Client.List(b.Ctx, &left, client.InNamespace(b.namespace)))
		if len(left.Items) > 0 {
			return fmt.Errorf("%d are there", len(left.Items))
		}
		return nil
	})
	calls, seconds := b.calls()
	calls, seconds = calls-callsBefore, seconds-secondsBefore
	requests, err := audit.Read(b.AuditLog(), audit.Query{Agent: "kruise-manager", Namespace: b.namespace, From: began})
	b.Must(err)
	b.Logf("%d Pods were deleted in %s; the managers were asked %.0f times, which took %.1f s, and made these requests: %v",
		pods, time.Since(began).Round(time.Millisecond), calls, seconds, requests.Counts)
	if calls < pods || seconds > 20 {
		b.Errorf("the managers were asked %.0f times about %d Pods, which took %.1f s, want no more than 20", calls, pods, seconds)
	}
	if n := requests.Reads + requests.Writes(); n > pods/4 {
		b.Errorf("the managers made %d requests for %d Pods: %v", n, pods, requests.Counts)
	}
}

// makePods makes each Pod of so many whose number leaves this remainder, ready, and of the budget web.
func (b *bench) makePods(remainder, of, workers int) error {
	for i := remainder; i < of; i += workers {
		p := b.guarded(i)
		if err := b.Client.Create(b.Ctx, p); err != nil {
			return err
		}
		p.Status = readyStatus()
		if err := b.Client.Status().Update(b.Ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// calls returns how often the API server has asked about a deletion of a Pod with a budget, and how many seconds that took.
func (b *bench) calls() (count, seconds float64) {
	b.Helper()
	text, err := b.plain.RESTClient().Get().AbsPath("/metrics").DoRaw(b.Ctx)
	b.Must(err)
	const metric = "apiserver_admission_webhook_admission_duration_seconds_"
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, metric) || !strings.Contains(line, `name="vpod.kb.io"`) || !strings.Contains(line, `operation="DELETE"`) {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, "}")+1:]), 64)
		b.Must(err)
		switch {
		case strings.HasPrefix(line, metric+"count"):
			count += n
		case strings.HasPrefix(line, metric+"sum"):
			seconds += n
		}
	}
	return count, seconds
}
