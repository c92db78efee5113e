package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/test/kit/fakecri"
)

// hashOfMain is what kubelets put on a container main of image nginx.
const hashOfMain = "1ae5a06d"

// runsWith makes the runtime have a container of the Pod, with TIER in its environment, and the Pod's status tell of it, as a kubelet would.
func (s *site) runsWith(p *corev1.Pod, id, tier string) {
	s.Helper()
	s.runtime.AddContainer(&fakecri.Container{
		ContainerStatus: runtimeapi.ContainerStatus{
			Id: id, State: runtimeapi.ContainerState_CONTAINER_RUNNING, Annotations: map[string]string{"io.kubernetes.container.hash": hashOfMain},
		},
		PodUID: string(p.UID),
		Info:   map[string]string{"info": fmt.Sprintf(`{"runtimeSpec":{"process":{"env":["PATH=/bin","TIER=%s"]}}}`, tier)},
	})
	before := p.DeepCopy()
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", Image: "nginx", ContainerID: fakecri.Name + "://" + id, RestartCount: int32(len(s.runtime.Stops())),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	must(s.T, shared.Client.Status().Patch(s.Context(), p, client.MergeFrom(before)))
}

// told waits until the Pod tells that the container runs with a tier.
func (s *site) told(p *corev1.Pod, id, tier string) {
	s.Helper()
	want := inplace.EnvironmentHash([]corev1.EnvVar{{Name: "TIER", Value: tier}})
	eventually(s.T, "the Pod tells that it runs with "+tier, func() error {
		if err := shared.Client.Get(s.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		var set pub.RuntimeContainerMetaSet
		if err := json.Unmarshal([]byte(p.Annotations[keys.RuntimeContainersMeta]), &set); err != nil {
			return err
		}
		if len(set.Containers) != 1 || set.Containers[0].ContainerID != fakecri.Name+"://"+id || set.Containers[0].Hashes.ExtractedEnvFromMetadataHash != want {
			return fmt.Errorf("it tells %+v", set.Containers)
		}
		return nil
	})
}

func (s *site) patchPod(p *corev1.Pod, change func(*corev1.Pod)) {
	s.Helper()
	before := p.DeepCopy()
	change(p)
	spec := p.DeepCopy()
	must(s.T, shared.Client.Patch(s.Context(), spec, client.MergeFrom(before)))
	must(s.T, shared.Client.Status().Patch(s.Context(), p, client.MergeFrom(before)))
}

// kruisePod makes a Pod of a CloneSet on the node.
func (s *site) kruisePod(tier string) *corev1.Pod {
	s.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "web-", Namespace: "default", Labels: map[string]string{"tier": tier},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", UID: "u", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName: s.node, TerminationGracePeriodSeconds: ptr.To[int64](7),
			Containers: []corev1.Container{{Name: "main", Image: "nginx", Env: []corev1.EnvVar{
				{Name: "TIER", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['tier']"}}},
			}}},
		},
	}
	must(s.T, shared.Client.Create(s.Context(), p))
	return p
}

func TestFacts(t *testing.T) {
	s := newSite(t, "teller")
	graces := make(chan int64, 10)
	s.runtime.OnStop = func(_ string, seconds int64) error {
		graces <- seconds
		return nil
	}
	s.serve()
	s.start()
	p := s.kruisePod("gold")
	s.runsWith(p, "one", "gold")
	s.told(p, "one", "gold")

	// Somebody changes the label: nothing is restarted, and what runs is still what ran.
	s.patchPod(p, func(p *corev1.Pod) { p.Labels["tier"] = "brass" })
	time.Sleep(2 * time.Second)
	s.told(p, "one", "gold")
	if stops := s.runtime.Stops(); len(stops) > 0 {
		t.Fatalf("containers %v were stopped for a label that somebody has changed", stops)
	}

	// An update in place changes it: the container is stopped once, however often the Pod changes meanwhile.
	state, err := json.Marshal(pub.InPlaceUpdateState{
		UpdateEnvFromMetadata: true, ContainerBatchesRecord: []pub.InPlaceUpdateContainerBatch{{Containers: []string{"main"}}},
	})
	must(t, err)
	s.patchPod(p, func(p *corev1.Pod) {
		p.Labels["tier"] = "silver"
		p.Annotations[keys.InPlaceUpdateState] = string(state)
		p.Status.Conditions = []corev1.PodCondition{{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionFalse}}
	})
	eventually(t, "the container is stopped", func() error {
		if len(s.runtime.Stops()) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	s.patchPod(p, func(p *corev1.Pod) { p.Labels["other"] = "1" })
	s.runsWith(p, "two", "silver")
	s.told(p, "two", "silver")
	s.patchPod(p, func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue })
	if diff := cmp.Diff([]string{"one"}, s.runtime.Stops()); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
	if grace := <-graces; grace != 7 {
		t.Errorf("the container had %d s to end, want the 7 of its Pod", grace)
	}

	// The next life of the daemon finds that all is told.
	version := p.ResourceVersion
	s.daemon.Kill()
	s.start()
	s.ready()
	time.Sleep(time.Second)
	s.told(p, "two", "silver")
	if p.ResourceVersion != version {
		t.Errorf("the Pod was written at rest: resource version %s, was %s", p.ResourceVersion, version)
	}

	// A Pod of nobody is none of our business.
	bare := podOn(t, s.node)
	s.runsWith(bare, "bare", "gold")
	time.Sleep(time.Second)
	must(t, shared.Client.Get(t.Context(), client.ObjectKeyFromObject(bare), bare))
	if told, has := bare.Annotations[keys.RuntimeContainersMeta]; has {
		t.Errorf("a Pod of nobody tells %s", told)
	}
}
