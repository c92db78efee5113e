package cli

import (
	"context"
	"fmt"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/cli/explain"
	"github.com/seed-69ecc383/kruise/internal/cli/kinds"
)

// explainRollout says why a Rollout stands where it does. While it works at a step, that is often a Pod of its workload.
func (p *program) explainRollout(ctx context.Context, o access.Object, out output) error {
	progress, err := p.progress(ctx, o)
	if err != nil {
		return err
	}
	var r v1beta1.Rollout
	if err := o.Into(&r); err != nil {
		return err
	}
	e := explain.Explanation{Cause: rolloutCause(o, &r, progress)}
	if e.Cause.Code == explain.Updating || e.Cause.Code == explain.DeadlineExceeded {
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
func isOwnFault(c explain.Code) bool {
	switch c {
	case explain.HeldByRollout, explain.HeldByPause, explain.HeldByPartition, explain.OnDelete, explain.Updating, explain.Nothing:
		return false
	}
	return true
}

// explainWorkload says why the workload of a Rollout stands as it does.
func (p *program) explainWorkload(ctx context.Context, o access.Object) (explain.Explanation, error) {
	workload, err := p.workloadOf(ctx, o)
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
func rolloutCause(o access.Object, r *v1beta1.Rollout, progress kinds.Progress) explain.Reason {
	_, reason, message := kinds.RolloutReason(r, v1beta1.ConditionProgressing)
	cause := explain.Reason{Code: explain.Updating, Why: progress.Message, Free: progress.Next}
	name := o.GetName()
	switch {
	case !progress.Seen:
		cause.Code = explain.ControllerLag
		cause.Free = "see to it that the manager of Rollouts runs: kubectl -n kruise-rollout get pods"
	case progress.Phase == kinds.Done:
		cause.Code = explain.Nothing
	case progress.Reason == kinds.Paused:
		cause.Code, cause.Free = explain.HeldByPause, "`kubectl kruise resume "+o.Arg()+"`"
	case progress.Reason == kinds.DeadlineExceeded:
		cause.Code = explain.DeadlineExceeded
	case progress.Reason == kinds.GivenUp:
		cause.Code, cause.Free = explain.Stopped, "give its workload a template that works: that begins the next release"
	case kinds.StopsRelease(reason):
		cause.Code, cause.Why = explain.Stopped, reason+": "+message
		cause.Free = fmt.Sprintf("`kubectl kruise retry %s` runs the step anew, `approve %s` goes on all the same, `abort %s` goes back",
			name, name, name)
	case progress.Reason == kinds.NeedsApproval:
		cause.Code, cause.Free = explain.WaitApproval, fmt.Sprintf("`kubectl kruise approve %s`, or `kubectl kruise abort %s`", name, name)
	case progress.Phase == kinds.Waiting: // for a workload that is not there
		cause.Code = explain.Stopped
	}
	if cause.Free == "" && cause.Code == explain.Updating {
		cause.Free = "wait: the step ends by itself"
	}
	return cause
}
