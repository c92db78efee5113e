package realnode

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// claimsGoWithPods scales a StatefulSet in and out at once whose claims go along with surplus Pods. A Pod that comes back finds an empty volume, also
// where the kubelet still had the old one mounted when it was asked for; the others keep theirs.
func (w *world) claimsGoWithPods() {
	s := stateful("guest", 2)
	s.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenScaled: v1beta1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
	w.Must(w.Client.Create(w.Ctx, s))
	settled := func() {
		w.Helper()
		w.Eventually("guest has settled", func() error {
			if err := w.Client.Get(w.Ctx, client.ObjectKeyFromObject(s), s); err != nil {
				return err
			}
			if n := *s.Spec.Replicas; s.Status.ObservedGeneration != s.Generation || s.Status.Replicas != n || s.Status.AvailableReplicas != n {
				return fmt.Errorf("%d of %d Pods are available", s.Status.AvailableReplicas, s.Status.Replicas)
			}
			for _, p := range w.pods("guest") {
				if p.DeletionTimestamp != nil {
					return fmt.Errorf("%s is on its way out", p.Name)
				}
			}
			return nil
		})
	}
	settled()
	before, claims := w.takeNotes("guest"), w.claims("guest")
	w.editObject(s, func() { *s.Spec.Replicas = 1 })
	w.Eventually("the Pod is on its way out", func() error {
		for _, p := range w.pods("guest") {
			if p.UID == before[1].UID && p.DeletionTimestamp == nil {
				return fmt.Errorf("%s is not", p.Name)
			}
		}
		return nil
	})
	w.editObject(s, func() { *s.Spec.Replicas = 2 })
	settled()
	after, now := w.pods("guest"), w.claims("guest")
	if len(after) != 2 || after[0].UID != before[0].UID || after[1].UID == before[1].UID {
		w.Fatalf("%d Pods are there, or not one of before and a new one", len(after))
	}
	if len(now) != 2 || now[0] != claims[0] || now[1] == claims[1] {
		w.Errorf("the claims are %v, were %v", now, claims)
	}
	for i, want := range []string{"kept", "nothing"} {
		if note := w.run(&after[i], "web", "sh", "-c", "cat /data/note || echo nothing"); note != want {
			w.Errorf("%s finds %q on its volume, want %s", after[i].Name, note, want)
		}
	}
}
