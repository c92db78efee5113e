package ops

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// TestPodsThatCannotBeTakenOutOfService: a Pod without the readiness gate stays in its endpoints, and its containers are stopped after the wait all
// the same.
func TestPodsThatCannotBeTakenOutOfService(t *testing.T) {
	e := newEnv(t)
	p := e.runPod("p", func(p *corev1.Pod) { p.Spec.ReadinessGates = nil }, "main")
	unready := make(chan string, 99)
	stop, err := shared.Follow(e.Ctx, &corev1.PodList{}, e.Namespace, func(event watch.Event) {
		now := event.Object.(*corev1.Pod)
		for _, c := range now.Status.Conditions {
			mark := c.Type == "KruisePodReady" || c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue
			if mark && now.Status.ContainerStatuses[0].RestartCount == 0 && now.Status.ContainerStatuses[0].State.Running != nil {
				unready <- fmt.Sprintf("%+v", c)
			}
		}
	})
	e.Must(err)
	r := e.ask("r", "p", `spec: {strategy: {unreadyGracePeriodSeconds: 3}}`, "main")
	e.await(r, v1beta1.ContainerRecreateRequestCompleted)
	e.Must(stop())
	e.expect("outcome", outcome(r), "main Succeeded, success True")
	close(unready)
	for c := range unready {
		t.Errorf("the Pod had condition %s", c)
	}
	since := meta.FindStatusCondition(r.Status.Conditions, v1beta1.ContainerRecreateRequestPreRecreateGrace)
	if since == nil {
		t.Fatalf("the request does not say since when it waits: %+v", r.Status)
	}
	if stopped := e.node.Calls(string(p.UID))[0].At; stopped.Sub(since.LastTransitionTime.Time) < 3*time.Second {
		t.Errorf("it was stopped %s after the wait had begun, want 3 s at least", stopped.Sub(since.LastTransitionTime.Time))
	}
	if len(r.Finalizers) > 0 {
		t.Errorf("finalizers %v", r.Finalizers)
	}
}

// TestClientsOfTheOlderVersion: it tells in annotations what the newer one tells in its status, and a write of it takes nothing away.
func TestClientsOfTheOlderVersion(t *testing.T) {
	e := newEnv(t)
	e.runPod("p", nil, "main")
	older := parse[v1alpha1.ContainerRecreateRequest](
		e, `spec: {podName: p, containers: [{name: main}], strategy: {unreadyGracePeriodSeconds: 2, minStartedSeconds: 2}}`,
	)
	older.Name = "r"
	e.Must(e.Client.Create(e.Ctx, older))
	if older.Spec.Containers[0].StatusContext == nil || older.Labels[keys.RecreateActive] != "true" {
		t.Errorf("it is not completed: %+v %v", older.Spec, older.Labels)
	}
	key := client.ObjectKeyFromObject(older)
	both := func() (*v1beta1.ContainerRecreateRequest, *v1alpha1.ContainerRecreateRequest) {
		newer, older := &v1beta1.ContainerRecreateRequest{}, &v1alpha1.ContainerRecreateRequest{}
		e.Eventually("both are of one moment", func() error {
			*newer, *older = v1beta1.ContainerRecreateRequest{}, v1alpha1.ContainerRecreateRequest{}
			e.Must(e.Client.Get(e.Ctx, key, newer))
			e.Must(e.Client.Get(e.Ctx, key, older))
			if newer.ResourceVersion != older.ResourceVersion {
				return errors.New("it was written meanwhile")
			}
			return nil
		})
		return newer, older
	}
	e.Eventually("it waits", func() error {
		newer, older := both()
		since := meta.FindStatusCondition(newer.Status.Conditions, v1beta1.ContainerRecreateRequestPreRecreateGrace)
		if since == nil {
			return errors.New("there is no condition")
		}
		e.expect(
			"since when it waits", older.Annotations[keys.RecreateUnreadyAcquired], since.LastTransitionTime.UTC().Format(time.RFC3339),
		)
		return nil
	})
	e.Eventually("its container has come back", func() error {
		newer, older := both()
		if len(newer.Status.ContainerStatusSnapshot) == 0 {
			return errors.New("there is no snapshot")
		}
		var told []v1beta1.ContainerRecreateRequestSyncContainerStatus
		e.Must(json.Unmarshal([]byte(older.Annotations[keys.RecreateSyncContainerStatuses]), &told))
		if diff := cmp.Diff(newer.Status.ContainerStatusSnapshot, told); diff != "" {
			t.Errorf("containers (-newer +older):\n%s", diff)
		}
		return nil
	})
	r := &v1beta1.ContainerRecreateRequest{ObjectMeta: older.ObjectMeta}
	e.await(r, v1beta1.ContainerRecreateRequestCompleted)
	e.expect("outcome", outcome(r), "main Succeeded, success True")
	e.Eventually("it is closed", func() error {
		newer, _ := both()
		if _, active := newer.Labels[keys.RecreateActive]; active || len(newer.Finalizers) > 0 {
			return fmt.Errorf("labels %v, finalizers %v", newer.Labels, newer.Finalizers)
		}
		return nil
	})

	before, _ := both()
	scene.Edit(e.Env, "r", &v1alpha1.ContainerRecreateRequest{}, func(r *v1alpha1.ContainerRecreateRequest) { r.Labels["mine"] = "x" })
	after, _ := both()
	if diff := cmp.Diff(before.Status, after.Status); diff != "" {
		t.Errorf("a write of the older version changes the status (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
		t.Errorf("and the spec (-before +after):\n%s", diff)
	}
	for _, key := range []string{keys.RecreateUnreadyAcquired, keys.RecreateSyncContainerStatuses} {
		if text, stored := after.Annotations[key]; stored {
			t.Errorf("the newer version has annotation %s: %s", key, text)
		}
	}
	err := scene.TryEdit(e.Env, "r", &v1alpha1.ContainerRecreateRequest{}, func(r *v1alpha1.ContainerRecreateRequest) {
		r.Annotations[keys.RecreateUnreadyAcquired] = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	})
	if err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "immutable") {
		t.Errorf("moving the time since when it waits: %v", err)
	}
}
