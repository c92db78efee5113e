package imagepulljob

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
	"github.com/seed-69ecc383/kruise/test/sim/invariant"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

// TestPromises runs the controller in simulated clusters in which everything goes wrong that can.
func TestPromises(t *testing.T) { suite(Plan).Hold(t) }

// TestWhatBrokeOnceHolds lets clusters live again in which a controller began to lead with a cache that was older than what the one before it had done.
func TestWhatBrokeOnceHolds(t *testing.T) { suite(Plan).Again(t, 6469, 8264, 8429) }

// TestRunsRepeat checks that a failure could be repeated.
func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }

// TestMistakesShow makes mistakes on purpose: the checks of TestPromises must see each of them.
func TestMistakesShow(t *testing.T) {
	plans := func(mistake func(*State)) promises.Suite {
		return suite(func(v State) plan.Plan {
			if v.problem == nil && v.Job.Status.CompletionTime == nil {
				mistake(&v)
			}
			return Plan(v)
		})
	}
	trusting := suite(Plan)
	trusting.Mistake = promises.Mistake{TrustsCache: true}
	unconditional := suite(Plan)
	unconditional.Mistake = promises.Mistake{Unconditional: true}
	for name, tc := range map[string]struct {
		suite promises.Suite
		want  string
	}{
		"it forgets the parallelism": {plans(func(v *State) { v.parallelism++ }), invariant.RuleParallelism},
		"it asks those that have answered once more": {plans(func(v *State) {
			for _, n := range v.nodes {
				if n.State == pull.Failed {
					n.State = pull.NotRequested
				}
			}
		}), invariant.RuleAskedOnce},
		"it trusts a cache that is behind":       {trusting, invariant.RuleParallelism},
		"it overwrites what others have written": {unconditional, invariant.RuleOthersTags},
	} {
		t.Run(name, func(t *testing.T) { tc.suite.Break(t, tc.want) })
	}
}

// suite is the controller, with a planner that may be mistaken, in clusters with one job and nodes that come, go and answer.
func suite(planned func(State) plan.Plan) promises.Suite {
	return promises.Suite{
		Scheme:  promises.Scheme(),
		Watched: []client.Object{&v1beta1.ImagePullJob{}, &v1beta1.NodeImage{}, &corev1.Node{}, &corev1.Pod{}, &corev1.Secret{}},
		Populate: func(w *promises.World) promises.Scenario {
			s := newScenario(w)
			planner := promises.Planner[Snapshot, State]{Plan: planned, Take: Classify, Snapshot: func(v State) Snapshot { return v.Snapshot }}
			return promises.Scenario{
				Start: func(c promises.Connection) simulate.Process {
					k := Kind(Options{Sources: observe.NewSources(c.Live.Reader, c.Now), Seal: plainly, Extra: 300 * time.Second})
					k.Plan = planner.In(w)
					return promises.Start(k, c.Runtime(), c)
				},
				Act: s.act, Relent: func() {}, Others: []func() bool{s.answer}, Check: invariant.CheckImagePullJob, Converged: s.converged,
			}
		},
	}
}

// scenario is one job, the administrator of its nodes, their daemons, and somebody who asks the nodes for other images.
type scenario struct {
	promises.User
	job simulate.Key
}

func newScenario(w *promises.World) *scenario {
	s := &scenario{
		User: promises.User{Cluster: w.Cluster, Rand: w.Rand},
		job:  simulate.Key{Kind: v1beta1.GroupVersion.WithKind("ImagePullJob"), Namespace: "default", Name: "job"},
	}
	for i := range 4 + s.Rand.Intn(8) {
		s.create(&v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}})
	}
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: s.job.Namespace, Name: s.job.Name}}
	job.Spec.Image = "nginx:1"
	parallelism := intstr.FromInt32(int32(1 + s.Rand.Intn(3)))
	job.Spec.Parallelism = &parallelism
	if s.Chance(30) {
		job.Spec.PullSecrets = []string{"reg"}
		s.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "reg"}, Type: corev1.SecretTypeDockerConfigJson,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"docker.io":{"username":"u"}}}`)},
		})
	}
	s.create(job)
	return s
}

func (s *scenario) create(object client.Object) {
	// A name may be taken: then nothing new has come.
	_, _ = s.Cluster.Create(promises.UserActor, object)
}

func (s *scenario) nodeImages() []*v1beta1.NodeImage {
	var out []*v1beta1.NodeImage
	for _, object := range s.Cluster.Of(v1beta1.GroupVersion.WithKind("NodeImage")) {
		out = append(out, object.(*v1beta1.NodeImage))
	}
	return out
}

// act is what somebody does to the nodes.
func (s *scenario) act() {
	images := s.nodeImages()
	if len(images) == 0 || s.Chance(10) {
		s.create(&v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", s.Rand.Intn(14))}})
		return
	}
	chosen := images[s.Rand.Intn(len(images))]
	if s.Chance(8) {
		s.Cluster.Delete(promises.UserActor, chosen)
		return
	}
	if s.Chance(10) {
		s.publishKey(chosen) // its daemon restarts
		return
	}
	tag := v1beta1.ImageTagSpec{Tag: fmt.Sprint("v", s.Rand.Intn(3)), Version: int64(s.Rand.Intn(5))}
	simulate.Update(s.Cluster, "another job", chosen, func(n *v1beta1.NodeImage) {
		if n.Spec.Images == nil {
			n.Spec.Images = map[string]v1beta1.ImageSpec{}
		}
		repository := []string{"nginx", "redis"}[s.Rand.Intn(2)]
		image := n.Spec.Images[repository]
		for _, has := range image.Tags {
			if has.Tag == tag.Tag {
				return
			}
		}
		image.Tags = append([]v1beta1.ImageTagSpec{}, image.Tags...)
		at := 0
		for at < len(image.Tags) && image.Tags[at].Tag < tag.Tag {
			at++
		}
		image.Tags = append(image.Tags[:at], append([]v1beta1.ImageTagSpec{tag}, image.Tags[at:]...)...)
		n.Spec.Images[repository] = image
	})
}

// answer is a daemon that begins or ends a pull of the job's image, and reports whether there was one.
func (s *scenario) answer() bool {
	for _, n := range s.nodeImages() {
		if len(n.Status.CredentialsKey) == 0 {
			s.publishKey(n)
			return true
		}
		for _, tag := range n.Spec.Images["nginx"].Tags {
			if tag.Tag != "1" || !opens(n, &tag) {
				continue
			}
			status := pull.StatusOf(n, "nginx", &tag)
			if status != nil && status.CompletionTime != nil {
				continue
			}
			says := v1beta1.ImageTagStatus{Tag: "1", Version: tag.Version, Phase: v1beta1.ImagePhasePulling}
			if status != nil || s.Chance(30) {
				now := metav1.NewTime(s.Cluster.Now())
				says.CompletionTime, says.Phase = &now, v1beta1.ImagePhaseSucceeded
				if s.Chance(20) {
					says.Phase = v1beta1.ImagePhaseFailed
				}
			}
			simulate.Update(s.Cluster, "daemon", n, func(n *v1beta1.NodeImage) {
				n.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"nginx": {Tags: []v1beta1.ImageTagStatus{says}}}
			})
			return true
		}
	}
	return false
}

// publishKey is a daemon that starts.
func (s *scenario) publishKey(n *v1beta1.NodeImage) {
	simulate.Update(s.Cluster, "daemon", n, func(n *v1beta1.NodeImage) {
		n.Status.CredentialsKey = fmt.Appendf(nil, "key %d of %s", s.Rand.Intn(1000), n.Name)
	})
}

// opens reports whether the daemon can open the credentials of a tag; until then its pull waits.
func opens(n *v1beta1.NodeImage, tag *v1beta1.ImageTagSpec) bool {
	for _, c := range tag.Credentials {
		if !bytes.HasPrefix(c.Sealed, append(n.Status.CredentialsKey, ": "...)) {
			return false
		}
	}
	return true
}

// converged returns what is wrong with the job, now that the cluster is at rest.
func (s *scenario) converged() []string {
	job, _ := s.Cluster.Get(s.job).(*v1beta1.ImagePullJob)
	switch status := job.Status; {
	case status.CompletionTime == nil:
		return []string{fmt.Sprintf("the job is not over: %+v", status)}
	case status.Active != 0 || status.Succeeded+status.Failed != status.Desired || len(status.FailedNodes) != int(status.Failed):
		return []string{fmt.Sprintf("its numbers are %+v", status)}
	}
	return nil
}
