package cloneset

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// sampleRevision is what the first revision of the basic example holds, to the byte: clusters of other versions hold the same.
const sampleRevision = `{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"sample"}},` +
	`"spec":{"containers":[{"image":"nginx:alpine","imagePullPolicy":"Always","name":"nginx","resources":{},` +
	`"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always",` +
	`"schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}}}`

func TestRevisionIsStoredToTheByte(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			e := newEnv(t)
			o := e.Manifest(e.manifest("cloneset-basic.yaml"))
			o.SetAPIVersion("apps.kruise.io/" + version)
			e.Must(e.Client.Create(e.Ctx, o))
			e.settled("sample", 5, 5)
			if got := e.revisions("sample"); !slices.Equal(got, []string{"1 sample-d4d4fb5bd"}) {
				t.Errorf("revisions are %v", got)
			}
			revision := &appsv1.ControllerRevision{}
			e.Read("sample-d4d4fb5bd", revision)
			if got := revision.Labels["controller.kubernetes.io/hash"]; got != "d4d4fb5bd" {
				t.Errorf("the label of the hash is %s", got)
			}
			if diff := cmp.Diff(sampleRevision, string(revision.Data.Raw)); diff != "" {
				t.Errorf("the revision's data (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHistoryLimit(t *testing.T) {
	e := newEnv(t)
	set := e.inPlace("forgetful", 1)
	two := int32(2)
	set.Spec.RevisionHistoryLimit = &two
	e.Must(e.Client.Create(e.Ctx, set))
	e.settled("forgetful", 1, 1)
	for i := range 6 {
		e.edit("forgetful", image(fmt.Sprintf("nginx:1.%d", i)))
		e.settled("forgetful", 1, 1)
	}
	e.Eventually("two old revisions and the live one are left", func() error {
		revisions := e.revisions("forgetful")
		if len(revisions) != 3 || revisions[0][:1] != "5" {
			return fmt.Errorf("revisions are %v", revisions)
		}
		return nil
	})
}

func TestRevisionNameIsTaken(t *testing.T) {
	e := newEnv(t)
	e.Must(e.Client.Create(e.Ctx, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "sample-d4d4fb5bd", Namespace: e.Namespace},
		Data:       runtime.RawExtension{Raw: []byte(`{"taken":true}`)},
		Revision:   1,
	}))
	e.Make(e.manifest("cloneset-basic.yaml"))
	set := e.settled("sample", 5, 5)
	if set.Status.CollisionCount == nil || *set.Status.CollisionCount != 1 || set.Status.UpdateRevision == "sample-d4d4fb5bd" {
		t.Errorf("collision count is %v, update revision %s", set.Status.CollisionCount, set.Status.UpdateRevision)
	}
}

func TestRoundTripThroughTheOlderVersion(t *testing.T) {
	e := newEnv(t)
	set := e.plain("kept", 2)
	set.Spec.ScaleStrategy = v1beta1.CloneSetScaleStrategy{ExcludePreparingDelete: true, EnablePVCReuse: true, MaxUnavailable: percent("50%")}
	seconds, pods := int32(120), int32(1)
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdatePolicyType,
		Partition:       percent("10%"), MaxUnavailable: number(1), MaxSurge: number(1), Paused: true,
		ScatterStrategy: pub.UpdateScatterStrategy{{Key: "a", Value: "b"}},
		InPlaceUpdateStrategy: &v1beta1.InPlaceUpdateStrategy{
			GracePeriodSeconds: 3, ImagePreDownloadParallelism: number(2),
			ImagePreDownloadTimeoutSeconds: &seconds, ImagePreDownloadMinUpdatedReadyPods: &pods,
		},
	}
	e.Must(e.Client.Create(e.Ctx, set))
	before := e.cloneSet("kept").Spec
	older := e.Manifest("apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\nmetadata: {name: kept}\n")
	beside := wait.Backoff{Steps: 20, Duration: 20 * time.Millisecond, Factor: 1.2} // the controller writes the status all the while
	e.Must(retry.RetryOnConflict(beside, func() error {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(older), older))
		older.SetLabels(map[string]string{"edited": "true", keys.ScalingExcludePreparingDelete: "true"})
		return e.Client.Update(e.Ctx, older)
	}))
	after := e.cloneSet("kept")
	if after.Labels["edited"] != "true" {
		t.Errorf("labels are %v", after.Labels)
	}
	if diff := difference(before, after.Spec); diff != "" {
		t.Errorf("the spec changed on its way through v1alpha1 (-was +is):\n%s", diff)
	}
}
