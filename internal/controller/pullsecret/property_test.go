package pullsecret

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

const (
	ruleOnlyCopies = "only copies are deleted"
	ruleNeeded     = "a copy that a daemon pulls with stays"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestMistakesShow makes mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	deaf := suite(Plan)
	deaf.Mistake = promises.Mistake{IsDeaf: func(simulate.Event) bool { return true }}
	for name, tc := range map[string]struct {
		suite promises.Suite
		want  string
	}{
		"it does not look who pulls": {suite(func(s Snapshot) plan.Plan { s.Needed = false; return Plan(s) }), ruleNeeded},
		"it takes any Secret for a copy": {suite(func(s Snapshot) plan.Plan {
			s.Copy = s.Copy.DeepCopy()
			metav1.SetMetaDataAnnotation(&s.Copy.ObjectMeta, keys.PullSecretSource, "ns/any")
			return Plan(s)
		}), ruleOnlyCopies},
		"it does not look again": {suite(func(s Snapshot) plan.Plan {
			p := Plan(s)
			p.Recheck = 0
			return p
		}), "at rest"},
		"it does not hear of Secrets": {deaf, "at rest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.suite.Break(t, tc.want)
		})
	}
}

// suite is the controller, with a planner that may be mistaken, in clusters whose daemons are upgraded.
func suite(planned func(Snapshot) plan.Plan) promises.Suite {
	return promises.Suite{
		Scheme:  promises.Scheme(),
		Watched: []client.Object{&corev1.Secret{}, &v1beta1.NodeImage{}},
		Populate: func(w *promises.World) promises.Scenario {
			s := &scenario{promises.User{Cluster: w.Cluster, Rand: w.Rand}}
			for i := range 3 {
				s.create(&v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}})
			}
			same := func(v Snapshot) Snapshot { return v }
			planner := promises.Planner[Snapshot, Snapshot]{Plan: planned, Take: same, Snapshot: same}
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					k := Kind()
					k.Plan = planner.In(w)
					return promises.Start(k, c.Runtime(), c)
				},
				Act: s.act, Relent: s.relent, Check: check, Converged: s.converged,
			}
		},
	}
}

// check returns the promises that the controller has broken in a history: by what it had seen of the NodeImages.
func check(history []simulate.Change) []invariant.Violation {
	var out []invariant.Violation
	kind := v1beta1.GroupVersion.WithKind("NodeImage")
	for i, c := range history {
		secret, is := c.Before.(*corev1.Secret)
		if !is || c.Pass == nil {
			continue
		}
		broken := func(rule string) {
			out = append(out, invariant.Violation{Rule: rule, Revision: c.Revision, Text: c.Key.Name})
		}
		if secret.Annotations[keys.PullSecretSource] == "" {
			broken(ruleOnlyCopies)
		}
		seen := map[string]*v1beta1.NodeImage{}
		for _, earlier := range history[:i] {
			if earlier.Key.Kind == kind && earlier.Revision <= c.Pass.Seen[kind] {
				seen[earlier.Key.Name], _ = earlier.After.(*v1beta1.NodeImage)
			}
		}
		for _, n := range seen {
			if n != nil && !c.Late && pull.NeedsCopy(n, secret) {
				broken(ruleNeeded)
			}
		}
	}
	return out
}

// scenario is nodes whose daemons are upgraded, and Secrets of many origins.
type scenario struct{ promises.User }

const namespace = "kruise-daemon-config"

func (s *scenario) create(object client.Object) {
	_, _ = s.Cluster.Create(promises.UserActor, object) // the name may be taken
}

func (s *scenario) nodes() []*v1beta1.NodeImage {
	var out []*v1beta1.NodeImage
	for _, object := range s.Cluster.Of(v1beta1.GroupVersion.WithKind("NodeImage")) {
		out = append(out, object.(*v1beta1.NodeImage))
	}
	return out
}

// act is what managers and daemons of both versions do, and users.
func (s *scenario) act() {
	nodes := s.nodes()
	n := nodes[s.Rand.Intn(len(nodes))]
	name := fmt.Sprint("reg-", s.Rand.Intn(4))
	switch {
	case s.Chance(30):
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if s.Chance(70) {
			secret.Annotations = map[string]string{keys.PullSecretSource: "ns/reg"}
		}
		s.create(secret)
	case s.Chance(50):
		simulate.Update(s.Cluster, "older manager", n, func(n *v1beta1.NodeImage) {
			n.Spec.Images = map[string]v1beta1.ImageSpec{"nginx": {
				Tags:        []v1beta1.ImageTagSpec{{Tag: "1", Version: n.Generation}},
				PullSecrets: []v1beta1.ReferenceObject{{Namespace: namespace, Name: name, Mode: v1beta1.ReferenceBatch}},
			}}
		})
	case s.Chance(80):
		s.answer(n)
	default:
		s.upgrade(n)
	}
}

// answer has a daemon end its pulls.
func (s *scenario) answer(n *v1beta1.NodeImage) {
	now := metav1.NewTime(s.Cluster.Now())
	simulate.Update(s.Cluster, "daemon", n, func(n *v1beta1.NodeImage) {
		n.Status.ImageStatuses = map[string]v1beta1.ImageStatus{}
		for repository, image := range n.Spec.Images {
			n.Status.ImageStatuses[repository] = v1beta1.ImageStatus{Tags: []v1beta1.ImageTagStatus{{
				Tag: image.Tags[0].Tag, Version: image.Tags[0].Version, Phase: v1beta1.ImagePhaseSucceeded, CompletionTime: &now,
			}}}
		}
	})
}

func (s *scenario) upgrade(n *v1beta1.NodeImage) {
	simulate.Update(s.Cluster, "daemon", n, func(n *v1beta1.NodeImage) { n.Status.CredentialsKey = []byte("key of " + n.Name) })
}

// relent has each node end its pulls, or get the new daemon.
func (s *scenario) relent() {
	for _, n := range s.nodes() {
		if s.Chance(50) {
			s.answer(n)
		} else {
			s.upgrade(n)
		}
	}
}

// converged returns what is wrong, now that the cluster is at rest.
func (s *scenario) converged() (problems []string) {
	for _, object := range s.Cluster.Of(corev1.SchemeGroupVersion.WithKind("Secret")) {
		if object.GetAnnotations()[keys.PullSecretSource] != "" {
			problems = append(problems, "at rest, "+object.GetName()+" is there, and no daemon pulls with it")
		}
	}
	return problems
}
