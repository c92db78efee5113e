package imagepulljob

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// Observe makes every read of a pass.
func (c Config) Observe(ctx context.Context, r observe.Reader, job *v1beta1.ImagePullJob) (Snapshot, error) {
	s := Snapshot{Job: job, Now: c.Now(), Options: c.Options}
	if job.DeletionTimestamp != nil || job.Status.CompletionTime != nil {
		return s, nil
	}
	var err error
	if s.NodeImages, err = r.NodeImages(ctx); err != nil {
		return Snapshot{}, err
	}
	if s.Nodes, err = r.Nodes(ctx); err != nil {
		return Snapshot{}, err
	}
	if s.Daemons, err = r.SelectedPods(ctx, c.Options.SystemNamespace, labels.SelectorFromSet(labels.Set{keys.ControlPlane: keys.ControlPlaneDaemon})); err != nil {
		return Snapshot{}, err
	}
	if err := s.readPods(ctx, r); err != nil {
		return Snapshot{}, err
	}
	if len(job.Spec.PullSecrets) == 0 {
		return s, nil
	}
	if s.Copies, err = r.Secrets(ctx, c.Options.ConfigNamespace); err != nil {
		return Snapshot{}, err
	}
	for _, name := range job.Spec.PullSecrets {
		secret, err := c.Sources.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: name})
		source := Source{Name: name, Secret: secret, Missing: apierrors.IsNotFound(err)}
		switch {
		case apierrors.IsForbidden(err):
			source.Problem = fmt.Sprintf("the manager may not read Secret %s of namespace %s: bind the ClusterRole kruise-pull-secrets-reader to its account there", name, job.Namespace)
		case err != nil && !source.Missing:
			source.Problem = fmt.Sprintf("reading Secret %s: %v", name, err)
		}
		s.Sources = append(s.Sources, source)
	}
	return s, nil
}

func (s *Snapshot) readPods(ctx context.Context, r observe.Reader) error {
	if s.Job.Spec.PodSelector == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&s.Job.Spec.PodSelector.LabelSelector)
	if err != nil {
		return nil // the survey says so
	}
	if s.Pods, err = r.SelectedPods(ctx, s.Job.Namespace, selector); err != nil {
		return err
	}
	controller := metav1.GetControllerOfNoCopy(s.Job)
	if controller == nil || controller.APIVersion != v1beta1.GroupVersion.String() {
		return nil
	}
	var workload client.Object
	switch controller.Kind {
	case "CloneSet":
		s.Workload.CloneSet = &v1beta1.CloneSet{}
		workload = s.Workload.CloneSet
	case "StatefulSet":
		s.Workload.StatefulSet = &v1beta1.StatefulSet{}
		workload = s.Workload.StatefulSet
	case "DaemonSet":
		s.Workload.DaemonSet = &v1beta1.DaemonSet{}
		workload = s.Workload.DaemonSet
	default:
		return nil
	}
	err = r.Get(ctx, client.ObjectKey{Namespace: s.Job.Namespace, Name: controller.Name}, workload)
	if apierrors.IsNotFound(err) {
		s.Workload = Workload{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", controller.Kind, controller.Name, err)
	}
	return nil
}
