// Package pullsecret deletes the Secrets that an earlier version of Kruise has copied for ImagePullJobs into the namespace whose Secrets
// its daemons could read. This version makes none: credentials are in NodeImages, sealed for the daemon of the node.
//
// Its promise: a copy is gone as soon as no daemon of that version pulls with it.
package pullsecret

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

// lookAgain is how often a copy is looked at that is still needed: while daemons are upgraded.
const lookAgain = 10 * time.Second

// Snapshot is all that one pass may look at.
type Snapshot struct {
	Copy *corev1.Secret
	// Needed means that a node may still pull with it.
	Needed bool
}

// Kind is the controller of copied Secrets.
func Kind() loop.Kind[*corev1.Secret, Snapshot, any] {
	return loop.Kind[*corev1.Secret, Snapshot, any]{Name: "pullsecret", Read: read, Plan: Plan}
}

func read(ctx context.Context, r loop.Reads, secret *corev1.Secret) (Snapshot, error) {
	s := Snapshot{Copy: secret}
	if !isCopy(secret) {
		return s, nil
	}
	images, err := r.NodeImages(ctx)
	for _, n := range images {
		s.Needed = s.Needed || pull.NeedsCopy(n, secret)
	}
	return s, err
}

func isCopy(s *corev1.Secret) bool {
	return s.DeletionTimestamp == nil && s.Annotations[keys.PullSecretSource] != ""
}

// Plan decides the next step. It reads only the snapshot and changes nothing.
func Plan(s Snapshot) plan.Plan {
	b := plan.For(fmt.Sprintf("Secret %s/%s", s.Copy.Namespace, s.Copy.Name))
	switch {
	case !isCopy(s.Copy):
	case s.Needed:
		b.Recheck(lookAgain, "daemons of an earlier version still pull with it")
	default:
		b.Do(plan.Action{
			Verb: plan.Delete, Concern: plan.Tidy, Before: s.Copy, What: "delete the copy", Why: "no daemon reads it any more",
		})
	}
	return b.Plan()
}
