package disruptions

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/admission/podbudget"
	"github.com/seed-69ecc383/kruise/internal/controller/podunavailablebudget"
	"github.com/seed-69ecc383/kruise/internal/disruption"
	"github.com/seed-69ecc383/kruise/internal/observe"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// replica is a manager as far as it evaluates: with a cache of its own, which lags behind as it likes.
type replica struct {
	evaluator *disruption.Evaluator
	handler   admission.Handler
}

// mistake is what an evaluator does wrong on purpose.
type mistake struct {
	// countsByCache has it permit what the status does not by Pods of a cache.
	countsByCache bool
	// forgets has it leave a permission out of the ledger.
	forgets bool
	// late is by how much the clock of the replica that does not lead is behind, more than it may be.
	late time.Duration
}

// mostApart is by how much the clocks of two managers differ at most, if each is right to two seconds.
const mostApart = 4 * time.Second

func newReplica(cached client.Reader, live simulate.Connection, now func() time.Time, wrong mistake) *replica {
	count := func(pods observe.Reader) func(context.Context, *v1beta1.PodUnavailableBudget) (rules.Numbers, error) {
		return func(ctx context.Context, b *v1beta1.PodUnavailableBudget) (rules.Numbers, error) {
			return podunavailablebudget.Count(ctx, observe.Workloads{Reader: pods}, b, now())
		}
	}
	config := disruption.Config{
		Cached: cached, Live: live, Now: now,
		Count:     count(observe.Reader{Reader: wanted{cached, live}, Indexed: true}),
		CountLive: count(observe.Reader{Reader: live}),
	}
	if wrong.countsByCache {
		config.CountLive = config.Count
	}
	if wrong.forgets {
		config.Live = forgetful{live}
	}
	e := disruption.New(config)
	return &replica{evaluator: e, handler: podbudget.Handler(podbudget.Options{Evaluator: e, Live: live, Deletes: true, Updates: true})}
}

// wanted reads Pods from a cache, and live how many there should be.
type wanted struct {
	client.Reader
	live client.Reader
}

func (w wanted) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return w.live.Get(ctx, key, into, options...)
}

// forgetful does not write.
type forgetful struct{ simulate.Connection }

func (forgetful) Status() client.SubResourceWriter { return lost{} }

type lost struct{ client.SubResourceWriter }

func (lost) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

// review asks the webhook about the deletion of a Pod, after is nil then, or an update.
func (r *replica) review(before, after *corev1.Pod) error {
	request := admissionv1.AdmissionRequest{Operation: admissionv1.Delete, Namespace: before.Namespace, Name: before.Name, OldObject: encoded(before)}
	if after != nil {
		request.Operation, request.Object = admissionv1.Update, encoded(after)
	}
	return r.ask(request)
}

// reviewEviction asks the webhook about an eviction.
func (r *replica) reviewEviction(p *corev1.Pod) error {
	return r.ask(admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, SubResource: "eviction", Namespace: p.Namespace, Name: p.Name, Object: encoded(&policyv1.Eviction{}),
	})
}

func (r *replica) ask(request admissionv1.AdmissionRequest) error {
	response := r.handler.Handle(context.Background(), admission.Request{AdmissionRequest: request})
	if response.Allowed {
		return nil
	}
	if response.Result == nil {
		return fmt.Errorf("no answer")
	}
	return &apierrors.StatusError{ErrStatus: *response.Result}
}

func encoded(object any) runtime.RawExtension {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return runtime.RawExtension{Raw: text}
}
