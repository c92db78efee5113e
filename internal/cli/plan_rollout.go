package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/steer"
)

// preview is what a release of a workload by a Rollout comes to.
type preview struct {
	Rollout  string          `json:"rollout"`
	Workload string          `json:"workload"`
	Disabled bool            `json:"disabled,omitempty"`
	Stages   []release.Stage `json:"steps"`
}

// planRollout tells what each step of a Rollout comes to, as it is or as a file has it.
func (p *program) planRollout(ctx context.Context, o access.Object, file string, set []string, out output) error {
	if len(set) > 0 {
		return errors.New("--set is for workloads: give a file with -f, or name the workload")
	}
	o, err := p.wanted(ctx, o, file, nil)
	if err != nil {
		return err
	}
	workload, err := p.workloadOf(ctx, o)
	if err != nil {
		return err
	}
	var r v1beta1.Rollout
	if err := o.Into(&r); err != nil {
		return err
	}
	found, err := previewOf(&r, workload)
	if err != nil {
		return err
	}
	return p.show(out, found, func() { p.previewText(found) })
}

// previewOf returns what a Rollout makes of the next change of its workload.
func previewOf(r *v1beta1.Rollout, workload access.Object) (*preview, error) {
	kind := schema.FromAPIVersionAndKind(r.Spec.WorkloadRef.APIVersion, r.Spec.WorkloadRef.Kind).GroupKind()
	style := steer.StyleOf(r.Spec.Strategy)
	k, ok := steer.Of(kind, style)
	typed := steer.Empty(kind)
	if !ok || typed == nil {
		return nil, fmt.Errorf("there is no forecast of a %s in style %s", kind, style)
	}
	if err := workload.Into(typed); err != nil {
		return nil, err
	}
	stages, err := steer.Preview(k, steer.Objects{Workload: typed}, r.Spec.Strategy)
	if err != nil {
		return nil, fmt.Errorf("the steps of Rollout %s: %w", r.Name, err)
	}
	return &preview{Rollout: r.Name, Workload: workload.Arg(), Disabled: r.Spec.Disabled, Stages: stages}, nil
}

// releasedBy returns what the Rollout of a workload makes of a change of its template; nil if it has none, or if that is not to be known.
func (p *program) releasedBy(ctx context.Context, o access.Object) (*preview, error) {
	reader, err := p.cluster.Client()
	if err != nil {
		return nil, err
	}
	var all v1beta1.RolloutList
	err = reader.List(ctx, &all, client.InNamespace(o.GetNamespace()))
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing Rollouts: %w", err)
	}
	for i := range all.Items {
		r := &all.Items[i]
		ref := r.Spec.WorkloadRef
		of := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
		if ref.Name == o.GetName() && of == o.Kind.GroupVersionKind.GroupKind() && r.DeletionTimestamp == nil && !r.Spec.Disabled {
			return previewOf(r, o)
		}
	}
	return nil, nil
}

func (p *program) previewText(r *preview) {
	p.screen.Wrapf("", "Rollout %s releases each change of the template of %s in %d steps:", r.Rollout, r.Workload, len(r.Stages))
	var rows [][]string
	for _, s := range r.Stages {
		rows = append(rows, []string{strconv.Itoa(int(s.Step)), s.PodsText(), s.TrafficText(), s.ThenText()})
	}
	p.screen.Table([]string{"STEP", "UPDATED", "TO THE NEW VERSION", "AND"}, rows)
	for _, s := range r.Stages {
		for _, remark := range s.Remarks {
			p.screen.Wrapf(fmt.Sprintf("step %d: ", s.Step), "%s", remark)
		}
	}
	if r.Disabled {
		p.screen.Wrapf("", "It is disabled: changes go out without steps.")
	}
}
