package podbudget

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/disruption"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
)

// Path is where requests on Pods are sent.
const Path = "/validate-pod"

// Evaluator decides on requests.
type Evaluator interface {
	Evaluate(context.Context, disruption.Request) (disruption.Decision, error)
}

// Options configure the webhook.
type Options struct {
	Evaluator Evaluator
	// Live reads the Pods that are to be evicted, which the request does not hold. A cache could still have the Pod before, or this one
	// when it was not ready.
	Live client.Reader
	// Deletes has deletions and evictions evaluated, Updates updates and resizes.
	Deletes, Updates bool
	// Within is the only namespace that the manager watches; empty for all.
	Within string
	// Reports may be nil.
	Reports *Reports
}

// Handler returns the handler of requests on Pods.
func Handler(o Options) admission.Handler { return admission.HandlerFunc(o.handle) }

func (o Options) handle(ctx context.Context, from admission.Request) admission.Response {
	if o.Within != "" && o.Within != from.Namespace {
		return admission.Allowed("")
	}
	r, err := o.read(ctx, from)
	switch {
	case apierrors.IsNotFound(err):
		return admission.Allowed("") // the API server will find that out, too
	case err != nil:
		return failed(ctx, from, err)
	case r == nil:
		return admission.Allowed("")
	}
	r.User = from.UserInfo.Username
	r.DryRun = r.DryRun || from.DryRun != nil && *from.DryRun
	decision, err := o.Evaluator.Evaluate(ctx, *r)
	switch {
	case err != nil:
		return failed(ctx, from, err)
	case decision.Allowed():
		return admission.Allowed("")
	}
	answer := denial(r, decision)
	o.Reports.denied(r, decision, answer.Message)
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: answer}}
}

func failed(ctx context.Context, from admission.Request, err error) admission.Response {
	log.FromContext(ctx).Error(err, "A request on a Pod could not be evaluated", "operation", from.Operation, "namespace", from.Namespace,
		"name", from.Name)
	return admission.Errored(http.StatusInternalServerError, err)
}

// read returns the request to evaluate; nil for requests that no budget covers.
func (o Options) read(ctx context.Context, from admission.Request) (*disruption.Request, error) {
	switch {
	case from.SubResource == "eviction":
		if !o.Deletes || from.Operation != admissionv1.Create {
			return nil, nil
		}
		return o.eviction(ctx, from)
	case from.Operation == admissionv1.Delete && from.SubResource == "":
		if !o.Deletes || len(from.OldObject.Raw) == 0 {
			return nil, nil
		}
		p, err := decode(from.OldObject)
		return &disruption.Request{Pod: p, Unverified: true, Operation: v1beta1.PubDeleteOperation}, err
	case from.Operation == admissionv1.Update && (from.SubResource == "" || from.SubResource == "resize"):
		if !o.Updates {
			return nil, nil
		}
		return update(from)
	default:
		return nil, nil
	}
}

func update(from admission.Request) (*disruption.Request, error) {
	before, err := decode(from.OldObject)
	if err != nil {
		return nil, err
	}
	after, err := decode(from.Object)
	if err != nil {
		return nil, err
	}
	operation, guarded := rules.OperationOf(before, after)
	if !guarded {
		return nil, nil
	}
	return &disruption.Request{Pod: before, Unverified: true, Operation: operation}, nil
}

// eviction returns the request to evict a Pod.
func (o Options) eviction(ctx context.Context, from admission.Request) (*disruption.Request, error) {
	asked := &policyv1.Eviction{} // of policy/v1beta1, too: the fields are the same
	if err := json.Unmarshal(from.Object.Raw, asked); err != nil {
		return nil, fmt.Errorf("reading the eviction: %w", err)
	}
	p := &corev1.Pod{}
	key := client.ObjectKey{Namespace: from.Namespace, Name: from.Name}
	if err := o.Live.Get(ctx, key, p); err != nil {
		return nil, fmt.Errorf("reading Pod %s: %w", key, err)
	}
	dryRun := asked.DeleteOptions != nil && len(asked.DeleteOptions.DryRun) > 0
	return &disruption.Request{Pod: p, Operation: v1beta1.PubEvictOperation, DryRun: dryRun}, nil
}

func decode(from runtime.RawExtension) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	if err := json.Unmarshal(from.Raw, p); err != nil {
		return nil, fmt.Errorf("reading the Pod: %w", err)
	}
	return p, nil
}
