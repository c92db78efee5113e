package imagepulljob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// Options are the choices made for the whole controller at start-up.
type Options struct {
	// ConfigNamespace is where the daemons of nodes may read Secrets.
	ConfigNamespace string
	// SystemNamespace is where the Pods of the daemons are, if they run as Pods.
	SystemNamespace string
	// Extra is how much longer than a job needs it a tag is kept in NodeImages.
	Extra time.Duration
}

// Source is a Secret that the job names.
type Source struct {
	Name string
	// Secret is nil where it can't be read.
	Secret *corev1.Secret
	// Missing means that there is none of that name, Problem why else it can't be read.
	Missing bool
	Problem string
}

// Snapshot is all that one pass may look at. It is read once and never changed, so it can be saved as a test case.
type Snapshot struct {
	Job *v1beta1.ImagePullJob
	// NodeImages and Nodes are all of the cluster.
	NodeImages []*v1beta1.NodeImage
	Nodes      []*corev1.Node
	// Daemons are the Pods of the daemons; none where these run in another way.
	Daemons []*corev1.Pod
	// Pods are those of the job's podSelector.
	Pods []*corev1.Pod
	// Workload is the workload that controls the job, if it is one of ours: its Pods are updated in a certain order.
	Workload Workload
	// Sources are the Secrets that the job names, Copies those in the namespace that daemons read.
	Sources []Source
	Copies  []*corev1.Secret
	Now     time.Time
	Options Options
}

// Workload is what controls a job; all fields nil for a job of a user's.
type Workload struct {
	CloneSet    *v1beta1.CloneSet
	StatefulSet *v1beta1.StatefulSet
	DaemonSet   *v1beta1.DaemonSet
}

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
		return nil // the state says so
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
