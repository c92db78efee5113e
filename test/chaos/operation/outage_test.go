package operation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

func TestOnlyCloneSetsMissAManagerThatIsDown(t *testing.T) {
	s := newSite(t, cluster.Options{Nodes: 2})
	s.Must(s.Install(s.Ctx))
	manager := s.Launch("first", cluster.ManagerOptions{})
	s.Must(manager.WaitReady(s.Ctx))
	got, err := s.addresses()
	s.Must(err)
	if want := addressesAt("https://localhost:" + manager.WebhookPort()); !slices.Equal(got, want) {
		t.Errorf("the API server reaches the manager at %q, want %q", got, want)
	}
	s.Must(s.Client.Create(s.Ctx, cloneSet("kept", 3)))
	s.available("kept", 3)
	before := s.pods("kept")
	s.Must(s.inDoomedNamespace())

	manager.Stop()
	t.Log("everything but CloneSets goes on")
	s.othersGoOn()

	t.Log("writes of CloneSets are refused, and told why")
	set := &v1beta1.CloneSet{}
	s.Must(s.Client.Get(s.Ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kept"}, set))
	changed := set.DeepCopy()
	changed.Spec.Template.Spec.Containers[0].Image = "nginx:mainline"
	s.refused(s.Client.Update(s.Ctx, changed), "mcloneset.kb.io")
	s.refused(s.Client.Create(s.Ctx, cloneSet("late", 1)), "mcloneset.kb.io")
	s.Must(s.Client.Delete(s.Ctx, set.DeepCopy(), client.DryRunAll)) // as long as it is not protected
	err = s.Client.Get(s.Ctx, client.ObjectKeyFromObject(set), &v1alpha1.CloneSet{})
	s.says(err, "conversion webhook", "connection refused")

	t.Log("a scaler's writes are taken, and acted on later")
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 4}}
	s.Must(s.Client.SubResource("scale").Update(s.Ctx, set.DeepCopy(), client.WithSubResourceBody(scale)))
	s.Must(s.Client.Delete(s.Ctx, &before[0]))
	s.Eventually("a deleted Pod of the CloneSet is gone", func() error {
		err := s.Client.Get(s.Ctx, client.ObjectKeyFromObject(&before[0]), &corev1.Pod{})
		return gone(err)
	})
	doomed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "doomed"}}
	s.Must(s.Client.Delete(s.Ctx, doomed))

	t.Log("a manager that starts finds everything as it was and does what was left undone")
	s.Must(s.Launch("second", cluster.ManagerOptions{}).WaitReady(s.Ctx))
	s.available("kept", 4)
	after := s.pods("kept")
	for _, p := range before[1:] {
		i := slices.IndexFunc(after, func(q corev1.Pod) bool { return q.UID == p.UID })
		if i < 0 || after[i].Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("Pod %s did not outlive the manager unharmed", p.Name)
		}
	}
	s.Eventually("the namespace with a CloneSet is gone", func() error {
		return gone(s.Client.Get(s.Ctx, client.ObjectKeyFromObject(doomed), doomed))
	})
}

// gone turns the answer NotFound into success, and success into a complaint.
func gone(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return fmt.Errorf("it is there")
	default:
		return err
	}
}

// refused checks that a write is refused because a webhook is not there, and that no client takes that for an invalid object.
func (s *site) refused(err error, webhook string) {
	s.Helper()
	s.says(err, "failed calling webhook", webhook, "connection refused")
	if err != nil && !apierrors.IsInternalError(err) {
		s.Errorf("refused with %v, want an internal error", err)
	}
}

func (s *site) available(name string, number int32) {
	s.Helper()
	s.Eventually(fmt.Sprintf("%s has %d available Pods", name, number), func() error {
		set := &v1beta1.CloneSet{}
		s.Must(s.Client.Get(s.Ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, set))
		if st := set.Status; st.AvailableReplicas != number || st.Replicas != number || st.ObservedGeneration != set.Generation {
			return fmt.Errorf("%d of %d are available", st.AvailableReplicas, st.Replicas)
		}
		return nil
	})
}

// inDoomedNamespace makes a CloneSet in a namespace that is to be deleted.
func (s *site) inDoomedNamespace() error {
	if err := s.Client.Create(s.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "doomed"}}); err != nil {
		return err
	}
	set := cloneSet("doomed", 1)
	set.Namespace = "doomed"
	return s.Client.Create(s.Ctx, set)
}

// othersGoOn does what a cluster is for, without CloneSets: each step fails if something of ours stands in its way.
func (s *site) othersGoOn() {
	s.Helper()
	for _, namespace := range []string{metav1.NamespaceDefault, "kruise-system"} {
		bare := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "bare", Namespace: namespace},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:alpine"}}},
		}
		s.Must(s.Client.Create(s.Ctx, bare))
		s.Must(s.Client.Patch(s.Ctx, bare, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))))
	}
	labels := map[string]string{"app": "web"}
	replicas := int32(2)
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: metav1.NamespaceDefault},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:alpine"}}},
			},
		},
	}
	s.Must(s.Client.Create(s.Ctx, web))
	rolledOut := func(image string) func() error {
		return func() error {
			if err := s.Client.Get(s.Ctx, client.ObjectKeyFromObject(web), web); err != nil {
				return err
			}
			if st := web.Status; st.ObservedGeneration != web.Generation || st.UpdatedReplicas != 2 || st.AvailableReplicas != 2 ||
				st.Replicas != 2 {
				return fmt.Errorf("the status is %+v", st)
			}
			for _, p := range s.pods("web") {
				if !strings.HasSuffix(p.Spec.Containers[0].Image, image) {
					return fmt.Errorf("pod %s runs %s", p.Name, p.Spec.Containers[0].Image)
				}
			}
			return nil
		}
	}
	s.Eventually("a new Deployment is available", rolledOut("alpine"))
	s.Must(s.Client.Patch(s.Ctx, web, client.RawPatch("application/strategic-merge-patch+json",
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:mainline"}]}}}}`))))
	s.Eventually("the Deployment is rolled out", rolledOut("mainline"))
	passing := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "passing"}}
	s.Must(s.Client.Create(s.Ctx, passing))
	s.Must(s.Client.Create(s.Ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "passing"}}))
	s.Must(s.Client.Delete(s.Ctx, passing))
	s.Eventually("a namespace comes and goes",
		func() error { return gone(s.Client.Get(s.Ctx, client.ObjectKeyFromObject(passing), passing)) })
	for _, p := range s.pods("kept") {
		if p.Status.Phase != corev1.PodRunning {
			s.Errorf("Pod %s of the CloneSet is %s", p.Name, p.Status.Phase)
		}
	}
}
