package trace

import (
	"reflect"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.39.0"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
)

// Names of spans, and of attributes that OpenTelemetry has no convention for.
const (
	rolloutSpan = "rollout"
	passSpan    = "pass"
	waitSpan    = "wait "

	revisionKey = attribute.Key("kruise.revision")
	reasonKey   = attribute.Key("kruise.reason")
	messageKey  = attribute.Key("kruise.message")
	updatedKey  = attribute.Key("kruise.pods.updated")
	wantedKey   = attribute.Key("kruise.pods.wanted")
	totalKey    = attribute.Key("kruise.pods.total")
	verbKey     = attribute.Key("kruise.write.verb")
	concernKey  = attribute.Key("kruise.write.concern")
	whatKey     = attribute.Key("kruise.write.what")
	whyKey      = attribute.Key("kruise.write.why")
	eventKey    = attribute.Key("kruise.write.event")
	methodKey   = attribute.Key("kruise.update.method")
	resultKey   = attribute.Key("kruise.result")
	objectKind  = attribute.Key("k8s.object.kind")
	objectName  = attribute.Key("k8s.object.name")
	objectUID   = attribute.Key("k8s.object.uid")
)

// attributesOf returns the attributes of all spans that belong to a release.
func attributesOf(p loop.Pass) []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.K8SNamespaceName(p.Owner.GetNamespace()), objectKind.String(kindOf(p.Owner)), objectName.String(p.Owner.GetName()),
		objectUID.String(string(p.Owner.GetUID())), revisionKey.String(p.Release.Revision),
	}
}

// kindOf returns the kind of an object by its type, as typed objects mostly do not tell it.
func kindOf(o plan.Object) string { return reflect.TypeOf(o).Elem().Name() }

// pass sends a pass and its writes.
func (t *Tracer) pass(r *release, p loop.Pass, at progress.Progress) {
	ctx, span := t.tracer.Start(r.parent(), passSpan, trace.WithTimestamp(p.Began), trace.WithAttributes(r.attributes...),
		trace.WithAttributes(numbersOf(at)...))
	for _, result := range p.Outcome.Results {
		a := result.Action
		_, write := t.tracer.Start(ctx, string(a.Verb)+" "+kindOf(a.Object()), trace.WithTimestamp(result.Began),
			trace.WithAttributes(r.attributes[0]), trace.WithAttributes(ofWrite(result)...))
		if apply.IsFailure(result.Err) {
			write.SetStatus(codes.Error, result.Err.Error())
		}
		write.End(trace.WithTimestamp(result.Ended))
	}
	if err := p.Outcome.Err(); err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End(trace.WithTimestamp(p.Ended))
}

func numbersOf(at progress.Progress) []attribute.KeyValue {
	return []attribute.KeyValue{updatedKey.Int(int(at.Updated)), wantedKey.Int(int(at.Wanted)), totalKey.Int(int(at.Total))}
}

// ofWrite describes a write.
func ofWrite(result apply.Result) []attribute.KeyValue {
	a, o := result.Action, result.Action.Object()
	if stored := result.Object; stored != nil && o.GetUID() == "" {
		o = stored // it has its UID, and its name where the API server has made that
	}
	out := []attribute.KeyValue{
		verbKey.String(string(a.Verb)), concernKey.String(string(a.Concern)), resultKey.String(outcomeOf(result.Err)),
	}
	if _, is := o.(*corev1.Pod); is {
		out = append(out, semconv.K8SPodName(o.GetName()), semconv.K8SPodUID(string(o.GetUID())))
	} else {
		out = append(out, objectKind.String(kindOf(o)), objectName.String(o.GetName()), objectUID.String(string(o.GetUID())))
	}
	for key, text := range map[attribute.Key]string{whatKey: a.What, whyKey: a.Why, eventKey: a.Event, methodKey: string(a.Method)} {
		if text != "" {
			out = append(out, key.String(text))
		}
	}
	return out
}

// outcomeOf returns how a write ended, in the words of the metric kruise_writes_total.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "ok"
	case apierrors.IsConflict(err):
		return "conflict"
	case apply.IsWaiting(err):
		return "waiting"
	}
	return "error"
}

// endWait sends the wait that a release is in, if it is in one.
func (t *Tracer) endWait(r *release, now time.Time) {
	if r.wait.code != "" {
		_, span := t.tracer.Start(r.parent(), waitSpan+string(r.wait.code), trace.WithTimestamp(r.wait.since),
			trace.WithAttributes(r.attributes...),
			trace.WithAttributes(reasonKey.String(string(r.wait.code)), messageKey.String(r.wait.why)))
		span.End(trace.WithTimestamp(now))
	}
	r.wait = wait{}
}

// supersede ends a release that another one has taken over.
func (t *Tracer) supersede(r *release, p loop.Pass) {
	t.endWait(r, p.Began)
	t.root(r, p.Began, "superseded", attribute.String("kruise.superseded_by", p.Release.Revision))
}

// end ends a release.
func (t *Tracer) end(r *release, now time.Time, at progress.Progress) {
	t.endWait(r, now)
	result := "done"
	if at.Phase == progress.Failed {
		result = "failed"
	}
	t.root(r, now, result, append(numbersOf(at), messageKey.String(at.Message))...)
	r.over = true
}

// root sends the root span of a release.
func (t *Tracer) root(r *release, now time.Time, result string, more ...attribute.KeyValue) {
	_, span := t.tracer.Start(r.asRoot(), rolloutSpan, trace.WithNewRoot(), trace.WithTimestamp(r.began),
		trace.WithAttributes(r.attributes...), trace.WithAttributes(more...), trace.WithAttributes(resultKey.String(result)))
	if result == "failed" {
		span.SetStatus(codes.Error, result)
	}
	span.End(trace.WithTimestamp(now))
}
