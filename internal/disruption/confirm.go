package disruption

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rules "github.com/seed-69ecc383/kruise/internal/rules/disruption"
)

// readAndAnswer answers by the budget as the API server has it.
func (e *evaluation) readAndAnswer(ctx context.Context) (rules.Answer, error) {
	if !e.live {
		if err := e.read(ctx); err != nil {
			return "", err
		}
	}
	return e.rule().Answer(e.budget)
}

// confirmNeedless asks the API server whether a budget really needs no Pods; the request is free then. An answer holds for all requests
// that came before the question: those that waited meanwhile. It holds for none that comes later, as nothing records what such requests do.
func (e *evaluation) confirmNeedless(ctx context.Context) (rules.Answer, error) {
	if e.came.Before(e.needless) {
		return rules.Free, nil
	}
	answer, err := e.readAndAnswer(ctx)
	if err != nil || answer != rules.Needless {
		return answer, err
	}
	e.needless = e.askedLive
	return rules.Free, nil
}

// verify reads the Pod that a request tells of, and answers for that one. It is free if it is gone, another one or unavailable by now: the
// API server finds that out as well, and asks again if something is left to ask.
func (e *evaluation) verify(ctx context.Context) (rules.Answer, error) {
	found := &corev1.Pod{}
	err := e.Live.Get(ctx, client.ObjectKeyFromObject(e.Pod), found)
	switch {
	case apierrors.IsNotFound(err):
		return rules.Free, nil
	case err != nil:
		return "", fmt.Errorf("reading Pod %s: %w", e.Pod.Name, err)
	case found.UID != e.Pod.UID || rules.IsExempt(found) || rules.Related(found.Annotations) != e.key.Name:
		return rules.Free, nil
	}
	e.Pod, e.Unverified = found, false
	return e.rule().Answer(e.budget)
}

// needsCount reports whether the numbers of the status may be wrong: when they are not of the present spec, and when a workload that wants
// fewer Pods deletes one before the controller has seen that it wants fewer.
func (e *evaluation) needsCount(answer rules.Answer) bool {
	return answer == rules.Unknown ||
		answer == rules.Refused && e.Operation == v1beta1.PubDeleteOperation && e.Now().Sub(e.refused) >= recountAfter
}

// recount answers by numbers that are computed now, or were a moment ago for the same version. A cache of Pods is enough to refuse. It is
// not enough to permit what the budget refuses: if it is behind, it still counts Pods whose permissions have left the ledger because they
// were used. Nor is a count from before the request enough for Pods that nobody needs, as no version changes with them: their workloads are
// asked again.
func (e *evaluation) recount(ctx context.Context) (counts *rules.Counts, answer rules.Answer, err error) {
	known := e.count.version == e.budget.ResourceVersion && e.Now().Sub(e.count.at) < recountAfter
	if known {
		answer, err = e.answerBy(e.count.numbers)
		if err != nil || answer != rules.Needless || e.came.Before(e.count.at) {
			return &e.count.numbers.Counts, answer, err
		}
	}
	began := e.Now()
	numbers, err := e.Count(ctx, e.budget)
	if err == nil {
		answer, err = e.answerBy(numbers)
	}
	if err == nil && answer != rules.Granted && (answer != rules.Needless || known) {
		return &numbers.Counts, answer, nil
	}
	if err == nil {
		numbers, err = e.CountLive(ctx, e.budget)
	}
	if err != nil {
		return nil, "", fmt.Errorf("counting the Pods of PodUnavailableBudget %s: %w", e.key, err)
	}
	e.count = count{numbers: numbers, version: e.budget.ResourceVersion, at: began}
	answer, err = e.answerBy(numbers)
	return &e.count.numbers.Counts, answer, err
}
