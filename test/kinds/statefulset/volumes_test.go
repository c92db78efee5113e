package statefulset

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/seed-69ecc383/kruise/test/kit/scene"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// TestTheClaimOfASurplusPodIsItsOwn: where claims go along with surplus Pods, the claim is the Pod's before the Pod goes, and the set's no more.
func TestTheClaimOfASurplusPodIsItsOwn(t *testing.T) {
	e := newEnv(t)
	e.create(claims("data"), retain("Delete", "Delete"))
	set := e.settled(at("1.27", 0, 1, 2)...)
	surplus := e.pod(2)
	var mu sync.Mutex
	var owners []string
	stop, err := shared.Follow(e.Ctx, &corev1.PersistentVolumeClaimList{}, e.Namespace, func(event watch.Event) {
		c, ok := event.Object.(*corev1.PersistentVolumeClaim)
		if !ok || c.Name != "data-web-2" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, r := range c.OwnerReferences {
			now := fmt.Sprintf("%s %s controller=%v", r.Kind, r.UID, r.Controller != nil && *r.Controller)
			if len(owners) == 0 || owners[len(owners)-1] != now {
				owners = append(owners, now)
			}
		}
	})
	e.Must(err)
	e.edit(replicas(2))
	e.gone("data-web-2")
	e.Must(stop())
	want := []string{fmt.Sprintf("StatefulSet %s controller=true", set.UID), fmt.Sprintf("Pod %s controller=true", surplus.UID)}
	if !slices.Equal(owners, want) {
		t.Errorf("its owners were %q, want %q", owners, want)
	}
}

// TestScalingInAndOutAtOnce takes the highest Pod away and asks for it again before anything has happened, or while it is on its way. Whichever it
// is, there are three Pods in the end, each with a claim that stays: its own of before where the Pod has stayed, and a new one else.
func TestScalingInAndOutAtOnce(t *testing.T) {
	e := newEnv(t)
	e.create(claims("data"), retain("Retain", "Delete"))
	e.settled(at("1.27", 0, 1, 2)...)
	var mu sync.Mutex
	var wrong []string
	dying := map[string]bool{}
	stopClaims, err := shared.Follow(e.Ctx, &corev1.PersistentVolumeClaimList{}, e.Namespace, func(event watch.Event) {
		if c, ok := event.Object.(*corev1.PersistentVolumeClaim); ok {
			mu.Lock()
			defer mu.Unlock()
			dying[c.Name] = c.DeletionTimestamp != nil && event.Type != watch.Deleted
		}
	})
	e.Must(err)
	kept := 0
	for range 8 {
		pod := e.uid(2)
		before, err := e.claim("data-web-2")
		e.Must(err)
		e.edit(replicas(2))
		e.edit(replicas(3))
		e.Eventually("there are three Pods, and each has a claim to stay", func() error {
			if set := e.set(); set.Status.ObservedGeneration != set.Generation {
				return fmt.Errorf("generation %d is not seen yet", set.Generation)
			}
			for n := range 3 {
				p, err := e.tryPod(n)
				if err != nil || p.DeletionTimestamp != nil || !scene.IsReady(&p) {
					return fmt.Errorf("%s is not ready, deleted %v: %w", p.Name, p.DeletionTimestamp, err)
				}
				c, err := e.claim("data-" + p.Name)
				if err != nil || c.DeletionTimestamp != nil || len(c.OwnerReferences) > 0 {
					return fmt.Errorf("%s is deleted at %v, owned by %v: %w", c.Name, c.DeletionTimestamp, c.OwnerReferences, err)
				}
			}
			return nil
		})
		after, err := e.claim("data-web-2")
		e.Must(err)
		if stayed := e.uid(2) == pod; stayed != (after.UID == before.UID) {
			mu.Lock()
			wrong = append(wrong, fmt.Sprintf("the Pod is the same: %v, its claim: %v", stayed, after.UID == before.UID))
			mu.Unlock()
		} else if stayed {
			kept++
		}
	}
	e.Must(stopClaims())
	t.Logf("in %d of 8 cases the Pod stayed", kept)
	for _, w := range wrong {
		t.Error(w)
	}
	for name, is := range dying {
		if is {
			t.Errorf("claim %s is on its way out", name)
		}
	}
}

// TestClaimsGrowOneAfterTheOther: with one unavailable Pod at most, no claim is told to grow while another one is at it, the highest ordinal first.
func TestClaimsGrowOneAfterTheOther(t *testing.T) {
	e := newEnv(t)
	e.create(claims("data"), grows)
	e.settled(at("1.27", 0, 1, 2)...)
	var mu sync.Mutex
	var order, wrong []string
	growing := map[string]bool{}
	stop, err := shared.Follow(e.Ctx, &corev1.PersistentVolumeClaimList{}, e.Namespace, func(event watch.Event) {
		c, ok := event.Object.(*corev1.PersistentVolumeClaim)
		if !ok {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		asked, has := c.Spec.Resources.Requests[corev1.ResourceStorage], c.Status.Capacity[corev1.ResourceStorage]
		if asked.Cmp(has) > 0 && !growing[c.Name] {
			order = append(order, c.Name)
		}
		growing[c.Name] = asked.Cmp(has) > 0
		n := 0
		for _, is := range growing {
			if is {
				n++
			}
		}
		if n > 1 {
			wrong = append(wrong, fmt.Sprintf("%d claims grow at a time", n))
		}
	})
	e.Must(err)
	e.edit(sized("2Gi"))
	e.Eventually("all claims have grown", func() error {
		set := e.set()
		if s := set.Status.VolumeClaims; set.Status.ObservedGeneration != set.Generation || len(s) != 1 || s[0].CompatibleReadyReplicas != 3 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	e.Must(stop())
	if want := []string{"data-web-2", "data-web-1", "data-web-0"}; !slices.Equal(order, want) || len(wrong) > 0 {
		t.Errorf("claims grew in the order %v, want %v; %v", order, want, wrong)
	}
}

func grows(set *v1beta1.StatefulSet) {
	set.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
}

func sized(text string) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) {
		set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(text)
	}
}

func TestClaimsThatCannotGrowAreRefusedTo(t *testing.T) {
	e := newEnv(t)
	no := false
	fixed := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fixed-" + e.Namespace}, Provisioner: "example.com/none", AllowVolumeExpansion: &no}
	e.Must(e.Create(e.Ctx, fixed))
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := shared.Client.Delete(context.Background(), fixed); err != nil {
			t.Logf("deleting class %s: %v", fixed.Name, err)
		}
	})
	e.create(replicas(0), claims("data", "logs"), grows, func(set *v1beta1.StatefulSet) {
		set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = &fixed.Name
	})
	for what, change := range map[string]func(*v1beta1.StatefulSet){
		"a size where the class is fixed": sized("2Gi"),
		"one name of two":                 func(set *v1beta1.StatefulSet) { set.Spec.VolumeClaimTemplates[1].Name = "others" },
		"one template less":               func(set *v1beta1.StatefulSet) { set.Spec.VolumeClaimTemplates = set.Spec.VolumeClaimTemplates[:1] },
		"more than a size": func(set *v1beta1.StatefulSet) {
			set.Spec.VolumeClaimTemplates[1].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		},
	} {
		if err := e.tryEdit(change); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			t.Errorf("%s: answered %v, want that it is refused", what, err)
		}
	}
}

// TestScaledByOthers scales by the subresource, as kubectl does, and by an autoscaler of Kubernetes, which knows of a workload no more than that.
func TestScaledByOthers(t *testing.T) {
	e := newEnv(t)
	e.create(replicas(1))
	set := e.settled(at("1.27", 0)...)
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 2}}
	e.Must(e.SubResource("scale").Update(e.Ctx, set, client.WithSubResourceBody(scale)))
	set = e.settled(at("1.27", 0, 1)...)
	e.Must(e.SubResource("scale").Get(e.Ctx, set, scale))
	if scale.Status.Replicas != 2 || scale.Status.Selector != "app=web" {
		t.Errorf("the scale says %+v", scale.Status)
	}
	least := int32(4)
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: e.Namespace}}
	hpa.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Name: "web"}
	hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas = &least, 9
	e.Must(e.Create(e.Ctx, hpa))
	e.settled(at("1.27", 0, 1, 2, 3)...)
	e.Eventually("the autoscaler has read the scale", func() error {
		e.Must(e.Get(e.Ctx, client.ObjectKeyFromObject(hpa), hpa))
		for _, c := range hpa.Status.Conditions {
			if c.Type == autoscalingv2.AbleToScale && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", hpa.Status.Conditions)
	})
}
