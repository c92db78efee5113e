package cli

import (
	"context"
	"fmt"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/explain"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
	"github.com/seed-69ecc383/kruise/internal/rules/reason"
)

// explainRollout says why a Rollout stands where it does. While it works at a step, that is often a Pod of its workload.
func (p *program) explainRollout(ctx context.Context, o access.Object, out output) error {
	o, err := p.noticed(ctx, o)
	if err != nil {
		return err
	}
	at, err := p.progress(ctx, o)
	if err != nil {
		return err
	}
	var r v1beta1.Rollout
	if err := o.Into(&r); err != nil {
		return err
	}
	e := explain.Explanation{Cause: rolloutCause(o, &r, at)}
	if e.Cause.Code == reason.Updating || e.Cause.Code == reason.DeadlineExceeded {
		of, err := p.explainWorkload(ctx, o)
		switch {
		case err != nil:
			fmt.Fprintf(p.Err, "Warning: its workload is not explained: %v\n", err)
		case isOwnFault(of.Cause.Code):
			e = of
		}
	}
	return p.show(out, e, func() {
		if len(e.Pods) > 0 {
			p.explainText(o, e)
			return
		}
		p.causeText(o.Arg(), e.Cause)
	})
}

// isOwnFault reports whether a workload stands still for a reason that no Rollout gives it.
func isOwnFault(c reason.Code) bool {
	switch c {
	case reason.HeldByRollout, reason.HeldByPause, reason.HeldByPartition, reason.OnDelete, reason.Updating, reason.Nothing:
		return false
	}
	return true
}

// explainWorkload says why the workload of a Rollout stands as it does.
func (p *program) explainWorkload(ctx context.Context, o access.Object) (explain.Explanation, error) {
	workload, err := p.noticedWorkloadOf(ctx, o)
	if err != nil {
		return explain.Explanation{}, err
	}
	s, err := p.situation(ctx, workload)
	if err != nil {
		return explain.Explanation{}, err
	}
	return explain.Explain(s), nil
}

// rolloutCause says why a Rollout stands where it does by its own status.
func rolloutCause(o access.Object, r *v1beta1.Rollout, at progress.Progress) explain.Reason {
	_, stopped, message := progress.RolloutReason(r, v1beta1.ConditionProgressing)
	cause := explain.Reason{Code: reason.Updating, Why: at.Message, Free: at.Next}
	name := o.GetName()
	switch {
	case !at.Seen:
		cause.Code = reason.ControllerLag
		cause.Free = "see to it that the manager of Rollouts runs: kubectl -n kruise-rollout get pods"
	case at.Phase == progress.Done:
		cause.Code = reason.Nothing
	case at.Reason == progress.Paused:
		cause.Code, cause.Free = reason.HeldByPause, "`kubectl kruise resume "+o.Arg()+"`"
	case at.Reason == progress.DeadlineExceeded:
		cause.Code = reason.DeadlineExceeded
	case at.Reason == progress.GivenUp:
		cause.Code, cause.Free = reason.Stopped, "give its workload a template that works: that begins the next release"
	case stopped == v1beta1.ReasonThirdVersion:
		cause.Code, cause.Why, cause.Free = reason.Stopped, message, "`kubectl kruise abort "+name+"`"
	case progress.StopsRelease(stopped):
		cause.Code, cause.Why = reason.Stopped, stopped+": "+message
		cause.Free = fmt.Sprintf("`kubectl kruise retry %s` runs the step anew, `approve %s` goes on all the same, `abort %s` goes back",
			name, name, name)
	case at.Reason == progress.NeedsApproval:
		cause.Code, cause.Free = reason.WaitApproval, fmt.Sprintf("`kubectl kruise approve %s`, or `kubectl kruise abort %s`", name, name)
	case at.Phase == progress.Waiting: // for a workload that is not there
		cause.Code = reason.Stopped
	}
	if cause.Free == "" && cause.Code == reason.Updating {
		cause.Free = "wait: the step ends by itself"
	}
	return cause
}
