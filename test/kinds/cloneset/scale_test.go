package cloneset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func TestBasicManifest(t *testing.T) {
	e := newEnv(t)
	e.Make(e.manifest("cloneset-basic.yaml"))
	set := e.settled("sample", 5, 5)
	if set.Status.UpdateRevision != "sample-d4d4fb5bd" || set.Status.CurrentRevision != "sample-d4d4fb5bd" {
		t.Errorf("update and current revision are %s and %s, want sample-d4d4fb5bd", set.Status.UpdateRevision, set.Status.CurrentRevision)
	}
	for _, p := range e.pods("sample") {
		id := strings.TrimPrefix(p.Name, "sample-")
		want := map[string]string{
			"app":                      "sample",
			keys.InstanceID:            id,
			"controller-revision-hash": "sample-d4d4fb5bd",
			"pod-template-hash":        "d4d4fb5bd",
			keys.LifecycleState:        "Normal",
		}
		for key, value := range want {
			if p.Labels[key] != value {
				t.Errorf("Pod %s has label %s=%q, want %q", p.Name, key, p.Labels[key], value)
			}
		}
		if len(id) != 5 || p.GenerateName != "sample-" || p.Annotations[keys.LifecycleTimestamp] == "" {
			t.Errorf("Pod %s: id %q, generateName %q, annotations %v", p.Name, id, p.GenerateName, p.Annotations)
		}
	}
	e.edit("sample", image("nginx:mainline"))
	if got := e.settled("sample", 5, 5).Status.UpdateRevision; got != "sample-56dfb978d4" {
		t.Errorf("after the change of image the update revision is %s, want sample-56dfb978d4", got)
	}
	e.edit("sample", image("nginx:alpine"))
	if got := e.settled("sample", 5, 5).Status.UpdateRevision; got != "sample-d4d4fb5bd" {
		t.Errorf("after rollback the update revision is %s, want sample-d4d4fb5bd again", got)
	}
	if got := e.revisions("sample"); !slices.Equal(got, []string{"2 sample-56dfb978d4", "3 sample-d4d4fb5bd"}) {
		t.Errorf("revisions are %v", got)
	}
}

func TestClaimsManifest(t *testing.T) {
	e := newEnv(t)
	e.Make(e.manifest("cloneset-claims.yaml"))
	e.settled("sample-data", 5, 5)
	e.claimPerPod("sample-data", 5)

	t.Log("a Pod deleted from outside comes back with its name and its claim")
	victim := e.pods("sample-data")[0]
	claimName := "data-vol-" + victim.Name
	before := &corev1.PersistentVolumeClaim{}
	e.Read(claimName, before)
	e.Must(e.Client.Delete(e.Ctx, &victim))
	e.Eventually("another Pod has the same name", func() error {
		for _, p := range e.pods("sample-data") {
			if p.Name == victim.Name && p.UID != victim.UID {
				return nil
			}
		}
		return fmt.Errorf("Pods are %v", names(e.pods("sample-data")))
	})
	e.settled("sample-data", 5, 5)
	after := &corev1.PersistentVolumeClaim{}
	e.Read(claimName, after)
	if before.UID != after.UID {
		t.Errorf("claim %s is another one: %s, was %s", claimName, after.UID, before.UID)
	}

	t.Log("scaling in takes a Pod and its claim")
	e.edit("sample-data", replicas(4))
	e.settled("sample-data", 4, 4)
	e.claimPerPod("sample-data", 4)

	t.Log("deleting the CloneSet takes all")
	e.Must(e.Client.Delete(e.Ctx, e.cloneSet("sample-data")))
	e.Eventually("no Pod and no claim is left", func() error {
		var pods corev1.PodList
		var claims corev1.PersistentVolumeClaimList
		e.Must(e.Client.List(e.Ctx, &pods, client.InNamespace(e.Namespace)))
		e.Must(e.Client.List(e.Ctx, &claims, client.InNamespace(e.Namespace)))
		if len(pods.Items)+len(claims.Items) > 0 {
			return fmt.Errorf("%d Pods and %d claims are left", len(pods.Items), len(claims.Items))
		}
		return nil
	})
}

// claimPerPod waits until there are as many claims as Pods, each with its Pod's instance id.
func (e *env) claimPerPod(name string, number int) {
	e.Helper()
	e.Eventually(fmt.Sprintf("%d claims are there, one for each Pod", number), func() error {
		var want, got []string
		for _, p := range e.pods(name) {
			want = append(want, "data-vol-"+p.Name+" "+p.Labels[keys.InstanceID])
		}
		for _, c := range e.claims(name) {
			got = append(got, c.Name+" "+c.Labels[keys.InstanceID])
		}
		slices.Sort(got)
		if len(want) != number || !slices.Equal(want, got) {
			return fmt.Errorf("claims are %v, want %v", got, want)
		}
		return nil
	})
}

func TestClaimsAreNotReusedByDefault(t *testing.T) {
	e := newEnv(t)
	o := e.Manifest(e.manifest("cloneset-claims.yaml"))
	set := convert[v1beta1.CloneSet](e, o)
	set.APIVersion = "apps.kruise.io/v1beta1"
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("sample-data", 5, 5)
	victim := e.pods("sample-data")[0]
	e.Must(e.Client.Delete(e.Ctx, &victim))
	e.Eventually("the Pod is replaced by one of another name, and its claim is gone", func() error {
		if pods := names(e.pods("sample-data")); len(pods) != 5 || slices.Contains(pods, victim.Name) {
			return fmt.Errorf("Pods are %v", pods)
		}
		for _, c := range e.claims("sample-data") {
			if c.Name == "data-vol-"+victim.Name {
				return fmt.Errorf("claim %s is there", c.Name)
			}
		}
		return nil
	})
	e.claimPerPod("sample-data", 5)
}

func TestStuckPodGivesUpItsClaims(t *testing.T) {
	e := newEnv(t)
	e.Make(e.manifest("cloneset-claims.yaml"))
	e.settled("sample-data", 5, 5)
	victim := e.pods("sample-data")[0]
	e.patchPod(victim.Name, func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "example.io/stuck") })
	e.Cleanup(func() {
		e.Ctx = e.Afterwards()
		e.patchPod(victim.Name, func(p *corev1.Pod) { p.Finalizers = nil })
	})
	e.Must(e.Client.Delete(e.Ctx, &victim))
	e.Within(35*time.Second, "a replacement with another id is ready", func() error {
		set := e.cloneSet("sample-data")
		if set.Status.AvailableReplicas != 5 || len(e.pods("sample-data")) != 5 {
			return fmt.Errorf("%d are available", set.Status.AvailableReplicas)
		}
		return nil
	})
	if condition := e.condition("sample-data", "FailedScale"); condition != "" {
		t.Errorf("FailedScale is %s", condition)
	}
}

func TestChosenPodsAreDeleted(t *testing.T) {
	e := newEnv(t)
	text := strings.Replace(e.manifest("cloneset-scale-in.yaml"), "podsToDelete: [chosen-9m4hp]", "{}", 1)
	text = strings.Replace(text, "  scaleStrategy:\n    {}\n", "", 1)
	text = strings.Replace(text, "replicas: 4", "replicas: 5", 1)
	e.Make(text)
	e.settled("chosen", 5, 5)

	t.Log("named with fewer replicas, exactly that Pod goes")
	victim := e.pods("chosen")[2].Name
	kept := slices.DeleteFunc(names(e.pods("chosen")), func(n string) bool { return n == victim })
	e.edit("chosen", func(set *v1beta1.CloneSet) {
		replicas(4)(set)
		set.Spec.ScaleStrategy.PodsToDelete = []string{victim}
	})
	e.settled("chosen", 4, 4)
	if got := names(e.pods("chosen")); !slices.Equal(got, kept) {
		t.Errorf("Pods are %v, want %v", got, kept)
	}
	e.listIsEmpty("chosen")

	t.Log("named without fewer replicas, it is replaced")
	victim = kept[0]
	e.edit("chosen", func(set *v1beta1.CloneSet) { set.Spec.ScaleStrategy.PodsToDelete = []string{victim} })
	e.listIsEmpty("chosen")
	e.settled("chosen", 4, 4)
	if got := names(e.pods("chosen")); slices.Contains(got, victim) {
		t.Errorf("Pods are %v, want none named %s", got, victim)
	}

	t.Log("the label on the Pod does the same")
	victim = e.pods("chosen")[1].Name
	e.patchPod(victim, func(p *corev1.Pod) { p.Labels[keys.SpecifiedDelete] = "true" })
	e.Eventually("the labelled Pod is replaced", func() error {
		if got := names(e.pods("chosen")); slices.Contains(got, victim) || len(got) != 4 {
			return fmt.Errorf("Pods are %v", got)
		}
		return nil
	})

	t.Log("a name that is no Pod's is refused, in both versions")
	e.refused(e.tryEdit("chosen", func(set *v1beta1.CloneSet) { set.Spec.ScaleStrategy.PodsToDelete = []string{"chosen-9m4hp"} }),
		"spec.scaleStrategy.podsToDelete", "chosen-9m4hp")
	older := e.Manifest(text)
	e.refused(retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the controller writes the status
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(older), older))
		e.Must(setNested(older, []any{"chosen-9m4hp"}, "spec", "scaleStrategy", "podsToDelete"))
		return e.Client.Update(e.Ctx, older)
	}), "podsToDelete", "chosen-9m4hp")
}

func (e *env) listIsEmpty(name string) {
	e.Helper()
	e.Eventually("podsToDelete is empty", func() error {
		if left := e.cloneSet(name).Spec.ScaleStrategy.PodsToDelete; len(left) > 0 {
			return fmt.Errorf("it names %v", left)
		}
		return nil
	})
}

func TestScaleSubresource(t *testing.T) {
	e := newEnv(t)
	e.Make(e.manifest("cloneset-basic.yaml"))
	set := e.settled("sample", 5, 5)
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
	e.Must(e.Client.SubResource("scale").Update(e.Ctx, set, client.WithSubResourceBody(scale)))
	e.settled("sample", 7, 7)
	e.Must(e.Client.SubResource("scale").Get(e.Ctx, set, scale))
	if scale.Status.Replicas != 7 || scale.Status.Selector != "app=sample" {
		t.Errorf("scale status is %+v, want 7 replicas selected by app=sample", scale.Status)
	}
}

func TestScaleOutOneAtATime(t *testing.T) {
	e := newEnv(t)
	one := intstr.FromInt32(1)
	set := e.plain("slowly", 0)
	set.Spec.ScaleStrategy.MaxUnavailable = &one
	set.Spec.MinReadySeconds = 5
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("slowly", 0, 0)
	e.edit("slowly", replicas(4))
	e.settled("slowly", 4, 4)
	var created []time.Time
	for _, p := range e.pods("slowly") {
		created = append(created, p.CreationTimestamp.Time)
	}
	slices.SortFunc(created, time.Time.Compare)
	for i := 1; i < len(created); i++ {
		if gap := created[i].Sub(created[i-1]); gap < 5*time.Second {
			t.Errorf("Pod %d was created %s after the one before, want 5 s at least", i, gap)
		}
	}
	if n := e.events("slowly", "ScaleUpLimited"); n != 1 {
		t.Errorf("there are %d events ScaleUpLimited, want 1", n)
	}
}

func TestScaleInOfPodsThatAreReadyButNotAvailable(t *testing.T) {
	e := newEnv(t)
	set := e.plain("patient", 5)
	set.Spec.MinReadySeconds = 99999
	e.Must(e.Client.Create(e.Ctx, set))
	e.Eventually("5 Pods are ready", func() error {
		if n := e.cloneSet("patient").Status.ReadyReplicas; n != 5 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	e.edit("patient", replicas(3))
	e.Within(time.Minute, "3 Pods are left", func() error {
		if n := len(e.allPods("patient")); n != 3 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
}

func TestScaleInPrefersTheCheapAndTheCrowded(t *testing.T) {
	e := newEnv(t)
	set := e.plain("ranked", 6)
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("ranked", 6, 6)
	var dear []string
	for _, p := range e.pods("ranked")[:4] {
		dear = append(dear, p.Name)
		e.patchPod(p.Name, func(p *corev1.Pod) {
			p.Annotations[corev1.PodDeletionCost] = "100"
		})
	}
	e.edit("ranked", replicas(4))
	e.settled("ranked", 4, 4)
	if got := names(e.pods("ranked")); !slices.Equal(got, dear) {
		t.Errorf("Pods are %v, want those with a deletion cost: %v", got, dear)
	}
}

func TestReleasedPodIsReplaced(t *testing.T) {
	e := newEnv(t)
	e.Must(e.Client.Create(e.Ctx, e.plain("loose", 3)))
	e.settled("loose", 3, 3)
	stray := e.pods("loose")[0].Name
	e.patchPod(stray, func(p *corev1.Pod) { p.Labels["app"] = "elsewhere" })
	e.Eventually("the Pod belongs to nobody and another took its place", func() error {
		p := &corev1.Pod{}
		e.Read(stray, p)
		if owner := metav1.GetControllerOf(p); owner != nil {
			return fmt.Errorf("%s is controlled by %s", stray, owner.Name)
		}
		if n := len(e.pods("loose")); n != 3 {
			return fmt.Errorf("%d Pods are there", n)
		}
		return nil
	})
}
