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
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
)

// Snapshot is all that one pass reads.
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
	// Sources are the Secrets that the job names.
	Sources []Source
	Now     time.Time
	Options Options
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

// Workload is what controls a job; all fields nil for a job of a user's.
type Workload struct {
	CloneSet    *v1beta1.CloneSet
	StatefulSet *v1beta1.StatefulSet
	DaemonSet   *v1beta1.DaemonSet
}

// read makes every read of a pass.
func (o Options) read(ctx context.Context, r loop.Reads, job *v1beta1.ImagePullJob) (State, error) {
	s := Snapshot{Job: job, Now: r.Now, Options: o}
	if job.DeletionTimestamp != nil || job.Status.CompletionTime != nil {
		return Classify(s), nil
	}
	var err error
	if s.NodeImages, err = r.NodeImages(ctx); err != nil {
		return State{}, err
	}
	if s.Nodes, err = r.Nodes(ctx); err != nil {
		return State{}, err
	}
	daemons := labels.SelectorFromSet(labels.Set{keys.ControlPlane: keys.ControlPlaneDaemon})
	if s.Daemons, err = r.SelectedPods(ctx, o.SystemNamespace, daemons); err != nil {
		return State{}, err
	}
	if err := s.readPods(ctx, r); err != nil {
		return State{}, err
	}
	s.readSecrets(ctx)
	return Classify(s), nil
}

func (s *Snapshot) readPods(ctx context.Context, r loop.Reads) error {
	if s.Job.Spec.PodSelector == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&s.Job.Spec.PodSelector.LabelSelector)
	if err != nil {
		return nil // Classify says so
	}
	if s.Pods, err = r.SelectedPods(ctx, s.Job.Namespace, selector); err != nil {
		return err
	}
	controller := metav1.GetControllerOfNoCopy(s.Job)
	if controller == nil || controller.APIVersion != v1beta1.GroupVersion.String() {
		return nil
	}
	key := client.ObjectKey{Namespace: s.Job.Namespace, Name: controller.Name}
	switch controller.Kind {
	case "CloneSet":
		s.Workload.CloneSet, err = observe.Find(ctx, r, key, &v1beta1.CloneSet{})
	case "StatefulSet":
		s.Workload.StatefulSet, err = observe.Find(ctx, r, key, &v1beta1.StatefulSet{})
	case "DaemonSet":
		s.Workload.DaemonSet, err = observe.Find(ctx, r, key, &v1beta1.DaemonSet{})
	}
	return err
}

func (s *Snapshot) readSecrets(ctx context.Context) {
	namespace := s.Job.Namespace
	for _, name := range s.Job.Spec.PullSecrets {
		secret, err := s.Options.Sources.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name})
		source := Source{Name: name, Secret: secret, Missing: apierrors.IsNotFound(err)}
		switch {
		case apierrors.IsForbidden(err):
			source.Problem = fmt.Sprintf("the manager may not read Secret %s of namespace %s: "+
				"bind the ClusterRole kruise-pull-secrets-reader to its account there", name, namespace)
		case err != nil && !source.Missing:
			source.Problem = fmt.Sprintf("reading Secret %s: %v", name, err)
		}
		s.Sources = append(s.Sources, source)
	}
}
