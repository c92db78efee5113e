package cloneset

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/convert"
	"github.com/seed-69ecc383/kruise/internal/defaults"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/test/sim/promises"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

var updateFilms = flag.Bool("update", false, "write the films anew instead of comparing them")

// studio is a cluster in which one of the examples lives, and the film of it: what the controller saw and planned, whenever that changed.
type studio struct {
	*testing.T
	world *promises.World
	film  strings.Builder
	last  string
	// isManned says whether the controller of the hooks is there to answer.
	isManned bool
}

// TestFilms shows the examples at work. A film is for people to read: after a change of behaviour, run with -update and judge the difference.
func TestFilms(t *testing.T) {
	films := map[string]func(*studio){
		"surge-partition": func(s *studio) {
			s.edit("changes the image", image("nginx:mainline"))
			s.edit("sets partition to 0", func(set *v1beta1.CloneSet) {
				set.Spec.UpdateStrategy.RollingUpdate.Partition.IntVal = 0
			})
		},
		"inplace-grace": func(s *studio) {
			s.edit("scales to 2", replicas(2))
			s.edit("changes the image", image("nginx:mainline"))
			s.editFor(5*time.Second, "changes the image again", image("nginx:1.27"))
			s.edit("takes that back in the grace period", image("nginx:mainline"))
		},
		"lifecycle": func(s *studio) {
			s.edit("changes the image", image("nginx:mainline"))
			s.answer("drains Pods that are to be updated, and takes them back")
			s.isManned = false
			s.edit("scales to 2", replicas(2))
			s.edit("scales back to 3", replicas(3))
			s.edit("scales to 2", replicas(2))
			s.answer("drains the Pod that is to go")
		},
		"claims": func(s *studio) {
			s.edit("scales to 3", replicas(3))
			s.act("the user deletes a Pod", func() { s.world.Cluster.Delete("user", s.world.Cluster.Of(podKind())[0]) })
			s.edit("scales to 2", replicas(2))
			s.edit("changes the image", image("nginx:mainline"))
		},
	}
	for name, play := range films {
		t.Run(name, func(t *testing.T) {
			s := newStudio(t, name)
			s.act("the user applies examples/cloneset-"+name+".yaml", func() {})
			play(s)
			s.compare(filepath.Join("testdata", name+".film"))
		})
	}
}

func newStudio(t *testing.T, example string) *studio {
	s := &studio{T: t}
	stage := promises.Suite{Scheme: promises.Scheme(), Watched: watched(), Populate: func(*promises.World) promises.Scenario {
		return promises.Scenario{
			Start:  func(c promises.Connection) simulate.Process { return start(c, Options{}, s.shoot) },
			Others: []func() bool{s.handOver},
		}
	}}
	s.world = stage.World(0)
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "cloneset-"+example+".yaml"))
	s.must(err)
	var older v1alpha1.CloneSet
	s.must(yaml.UnmarshalStrict(text, &older))
	set := &v1beta1.CloneSet{}
	convert.CloneSetToHub(&older, set)
	defaults.CloneSet(set, nil, defaults.Options{})
	set.Namespace = "default"
	_, err = s.world.Cluster.Create("user", set)
	s.must(err)
	s.world.Rig.Turmoil(s.context(), 0)
	return s
}

func (s *studio) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *studio) context() context.Context { return logr.NewContext(s.Context(), logr.Discard()) }

func podKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Pod") }

// act lets something happen, and then the controller, the nodes and the garbage collector do their work to its end.
func (s *studio) act(what string, do func()) { s.actFor(time.Hour, what, do) }

func (s *studio) actFor(patience time.Duration, what string, do func()) {
	s.Helper()
	fmt.Fprintf(&s.film, "\n> %s\n", what)
	do()
	s.must(s.world.Rig.Settle(s.context(), patience))
}

func (s *studio) edit(what string, change func(*v1beta1.CloneSet)) {
	s.Helper()
	s.editFor(time.Hour, what, change)
}

// editFor edits the CloneSet and looks on only until nothing happens for a while.
func (s *studio) editFor(patience time.Duration, what string, change func(*v1beta1.CloneSet)) {
	s.Helper()
	s.actFor(patience, "the user "+what, func() {
		set := s.world.Cluster.Of(kind())[0].(*v1beta1.CloneSet)
		simulate.Update(s.world.Cluster, "user", set, change)
	})
}

func (s *studio) answer(what string) {
	s.Helper()
	s.act("the hooks' own controller "+what, func() { s.isManned = true })
}

func image(name string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = name }
}

func replicas(n int32) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.Replicas = &n }
}

// handOver plays the controller of the hooks: it lets go of Pods that are to change or to go, and takes updated ones back.
func (s *studio) handOver() bool {
	const blocker = "example.io/unready-blocker"
	if !s.isManned {
		return false
	}
	did := false
	for _, object := range s.world.Cluster.Of(podKind()) {
		p := object.(*corev1.Pod)
		holds := slices.Contains(p.Finalizers, blocker)
		switch state := pod.State(p); {
		case holds && (state == pub.LifecycleStatePreparingUpdate || state == pub.LifecycleStatePreparingDelete):
			simulate.Update(s.world.Cluster, "hooks", p, func(p *corev1.Pod) { p.Finalizers = nil })
			did = true
		case !holds && state == pub.LifecycleStateUpdated:
			simulate.Update(s.world.Cluster, "hooks", p, func(p *corev1.Pod) { p.Finalizers = []string{blocker} })
			did = true
		}
	}
	return did
}

// shoot plans, and takes a frame where something has changed: the columns of kubectl get, the Pods by image, and the plan.
func (s *studio) shoot(v State) plan.Plan {
	p := Plan(v)
	status := Status(v, plan.Plan{}, apply.Outcome{})
	var frame strings.Builder
	fmt.Fprintf(&frame, "%d %d %d %d %d\n", *v.Set.Spec.Replicas,
		status.UpdatedReplicas, status.UpdatedReadyReplicas, status.ReadyReplicas, status.Replicas)
	byImage := map[string][]string{}
	for _, p := range v.Pods {
		byImage[p.Spec.Containers[0].Image] = append(byImage[p.Spec.Containers[0].Image], show(p))
	}
	for _, image := range slices.Sorted(maps.Keys(byImage)) {
		fmt.Fprintf(&frame, "    %-16s%s\n", image, strings.Join(byImage[image], ", "))
	}
	_, actions, _ := strings.Cut(p.String(), "\n")
	frame.WriteString(actions)
	if frame.String() != s.last {
		s.last = frame.String()
		fmt.Fprintf(&s.film, "%s  %s", s.world.Cluster.Now().Format("04:05.000"), s.last)
	}
	return p
}

// show names a Pod by its instance and says what is unusual about it.
func show(p *corev1.Pod) string {
	var odd []string
	if state := pod.State(p); state != pub.LifecycleStateNormal {
		odd = append(odd, string(state))
	}
	if p.Labels[keys.SpecifiedDelete] != "" {
		odd = append(odd, "specified")
	}
	switch {
	case p.DeletionTimestamp != nil:
		odd = append(odd, "ending")
	case !pod.IsReady(p):
		odd = append(odd, "not ready")
	}
	name := p.Labels[keys.InstanceID]
	if len(odd) > 0 {
		name += " (" + strings.Join(odd, ", ") + ")"
	}
	return name
}

// compare compares the film with the one that is stored, or stores it.
func (s *studio) compare(file string) {
	s.Helper()
	film := "# MIN:SEC  DESIRED UPDATED UPDATED_READY READY TOTAL, the Pods by image, and what is planned then\n" + s.film.String()
	if *updateFilms {
		s.must(os.MkdirAll(filepath.Dir(file), 0o755))
		s.must(os.WriteFile(file, []byte(film), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	s.must(err)
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(film, "\n")); diff != "" {
		s.Errorf("%s shows another course (-film +now); if that is intended: go test -run TestFilms -update\n%s", file, diff)
	}
}
