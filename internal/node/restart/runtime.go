package restart

import (
	"context"
	"errors"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/rules/recreate"
)

// runtime returns the runtime of the containers of a request.
func (w *reconciler) runtime(request *v1beta1.ContainerRecreateRequest) (*cri.Runtime, error) {
	var found *cri.Runtime
	for _, c := range request.Spec.Containers {
		if c.StatusContext == nil {
			continue
		}
		r, _, err := w.Runtimes.Of(c.StatusContext.ContainerID)
		if err != nil {
			return nil, err
		}
		if found != nil && r != found {
			return nil, errors.New("the containers are of different runtimes")
		}
		found = r
	}
	if found == nil {
		return w.Runtimes.Primary()
	}
	return found, nil
}

// newest asks the runtime for the newest container of each name in a request.
func newest(ctx context.Context, r *cri.Runtime, request *v1beta1.ContainerRecreateRequest) (map[string]recreate.Container, error) {
	all, err := r.Containers(ctx, request.Labels[keys.RecreatePodUID])
	if err != nil {
		return nil, err
	}
	out := map[string]recreate.Container{}
	for _, c := range request.Spec.Containers {
		found := all[c.Name]
		if found == nil {
			continue
		}
		now := recreate.Container{ID: r.Name + "://" + found.Id, RestartCount: int32(found.Metadata.GetAttempt())}
		switch found.State {
		case runtimeapi.ContainerState_CONTAINER_RUNNING:
			now.State = recreate.Running
		case runtimeapi.ContainerState_CONTAINER_EXITED:
			now.State = recreate.Exited
		default:
			now.State = recreate.Created
		}
		status, err := r.ContainerStatus(ctx, found.Id)
		if err != nil {
			return nil, err
		}
		if status == nil {
			continue // removed meanwhile
		}
		if status.StartedAt > 0 {
			now.StartedAt = time.Unix(0, status.StartedAt)
		}
		now.ExitCode = status.ExitCode
		out[c.Name] = now
	}
	return out, nil
}
