package images

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestJobsThatAreRefused: a quota lets no job through. The update goes on without, the job is not asked for in every pass, and one event tells why.
func TestJobsThatAreRefused(t *testing.T) {
	e := newSerialEnv(t, 2)
	const counted = "count/imagepulljobs.apps.kruise.io"
	quota := &corev1.ResourceQuota{ObjectMeta: metaOf(e.Namespace, "none", nil)}
	quota.Spec.Hard = corev1.ResourceList{counted: resource.MustParse("0")}
	e.Must(e.Client.Create(e.Ctx, quota))
	// What counts it may not have heard of this kind yet; a quota is heeded once it says how much is used.
	e.Eventually("the quota is heeded", func() error {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(quota), quota))
		quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, quota.Spec.Hard
		if err := e.Client.Status().Update(e.Ctx, quota); err != nil {
			return err
		}
		err := e.create("ImagePullJob", "try", "image: nginx:1")
		if err == nil || !strings.Contains(err.Error(), "exceeded quota") {
			return fmt.Errorf("a job is made: %w", err)
		}
		return nil
	})
	e.workload("CloneSet", "{podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1}", 8)
	e.ready(8, "nginx:v1")
	begin := time.Now()
	e.image("CloneSet", "v2")
	e.ready(8, "nginx:v2")
	took := time.Since(begin)
	var events corev1.EventList
	e.Must(e.Client.List(e.Ctx, &events, client.InNamespace(e.Namespace)))
	told := 0
	for _, event := range events.Items {
		if event.Reason == "FailedCreateImagePullJob" {
			told += int(max(1, event.Count))
			if !strings.Contains(event.Message, "exceeded quota") {
				t.Errorf("an event says %s", event.Message)
			}
		}
	}
	if told != 1 {
		t.Errorf("%d events tell of it, want 1", told)
	}
	requests := e.asked(begin)
	most := 2 + int(took/(10*time.Second))
	if tries := requests.Counts["create imagepulljobs 403"]; tries == 0 || tries > most {
		t.Errorf("the job was asked for %d times in %s, want %d at most: %v", tries, took, most, requests.Counts)
	}
}
