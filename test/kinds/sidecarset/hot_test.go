package sidecarset

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const hotEnvoy = `containers: [{name: envoy, image: "envoy:1", upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: "idle:1"}}]`

// twins describes the two containers of the hot-upgrade sidecar of a Pod: their images, which one works, and their versions.
func twins(p *corev1.Pod) string {
	return fmt.Sprintf("%s %s %s", imageOf(p, "envoy-1"), imageOf(p, "envoy-2"), p.Annotations["kruise.io/sidecarset-working-hotupgrade-container"])
}

func version(t *testing.T, p *corev1.Pod, prefix, container string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(p.Annotations[prefix+".sidecarset.kruise.io/"+container], 10, 64)
	if err != nil {
		t.Errorf("%s of %s: %v", prefix, container, err)
	}
	return n
}

func (e *env) twinsBecome(want string) {
	e.Helper()
	e.Eventually("the containers are "+want, func() error {
		if p := e.pod("web-0"); twins(p) != want || !isReady(p) {
			return fmt.Errorf("they are %s, ready %t", twins(p), isReady(p))
		}
		return e.countsAre(1, 1, 1, 1)
	})
}

// watchTwins follows the Pod, and returns a function that stops it, checks that from the first one on some container of the sidecar served in every
// version of the Pod, and returns what twins said of all of them.
//
// The Pod itself is not ready for a moment whenever one of its containers restarts: a simulated node reports the pause between the end of a container
// and the start of the next. A kubelet does not; that the Pod is ready all the time is checked on real nodes.
func (e *env) watchTwins() func() []string {
	e.Helper()
	var steps, gaps []string
	begun := false
	stop, err := shared.Follow(e.Ctx, &corev1.PodList{}, e.Namespace, func(event watch.Event) {
		p, isPod := event.Object.(*corev1.Pod)
		if !isPod || event.Type == watch.Deleted {
			return
		}
		steps = append(steps, twins(p))
		served := serves(p)
		if begun = begun || served; begun && !served {
			gaps = append(gaps, fmt.Sprintf("%s: %+v", twins(p), p.Status.ContainerStatuses))
		}
	})
	e.Must(err)
	return func() []string {
		e.Helper()
		e.Must(stop())
		if len(gaps) > 0 || !begun {
			e.Errorf("no container of the sidecar served (it ever did: %t) when they were %v", begun, gaps)
		}
		return slices.Compact(steps)
	}
}

// serves reports whether one of the two containers is ready with an image that is not that of an idle one.
func serves(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return (s.Name == "envoy-1" || s.Name == "envoy-2") && s.Ready && s.Image != "idle:1"
	})
}

// TestHotUpgrade lets the second container take over from the first one and back, then fails to, and goes back.
func TestHotUpgrade(t *testing.T) {
	e := newEnv(t)
	e.newSet(hotEnvoy)
	followed := e.watchTwins()
	e.newPods(1)
	e.twinsBecome(`envoy:1 idle:1 {"envoy":"envoy-1"}`)

	e.image("envoy:2")
	e.twinsBecome(`idle:1 envoy:2 {"envoy":"envoy-2"}`)
	p := e.pod("web-0")
	second := version(t, p, "version", "envoy-2")
	if second <= 1 || version(t, p, "versionalt", "envoy-2") != 0 || version(t, p, "version", "envoy-1") != 0 || version(t, p, "versionalt", "envoy-1") != second {
		t.Errorf("versions after the first upgrade: %v", p.Annotations)
	}
	if restartsOf(p, "app") != 0 || restartsOf(p, "envoy-1") != 1 || restartsOf(p, "envoy-2") != 1 {
		t.Errorf("want each of the two containers to restart once, and nothing else:\n%s", e.describe())
	}
	e.Eventually("there is an event", func() error {
		for _, reason := range e.Reasons("web-0") {
			if reason == "ResetContainerSucceed" {
				return nil
			}
		}
		return fmt.Errorf("there are %v", e.Reasons("web-0"))
	})

	e.image("envoy:3")
	e.twinsBecome(`envoy:3 idle:1 {"envoy":"envoy-1"}`)
	if third := version(t, e.pod("web-0"), "version", "envoy-1"); third <= second {
		t.Errorf("version %d follows %d", third, second)
	}

	e.image("envoy:never-ready")
	e.Eventually("the new container fails", func() error {
		if got := twins(e.pod("web-0")); got != `envoy:3 envoy:never-ready {"envoy":"envoy-2"}` {
			return fmt.Errorf("the containers are %s", got)
		}
		return nil
	})
	e.Always(scene.QuietPeriod, "the old container serves", func() error {
		p := e.pod("web-0")
		if restarts := restartsOf(p, "envoy-1"); restarts != 2 || imageOf(p, "envoy-1") != "envoy:3" {
			return fmt.Errorf("it restarted %d times", restarts)
		}
		return nil
	})
	e.image("envoy:3")
	e.twinsBecome(`envoy:3 idle:1 {"envoy":"envoy-1"}`)
	if restarts := restartsOf(e.pod("web-0"), "envoy-1"); restarts != 2 {
		t.Errorf("the container that served restarted %d times", restarts)
	}
	want := []string{
		`envoy:1 idle:1 {"envoy":"envoy-1"}`,
		`envoy:1 envoy:2 {"envoy":"envoy-2"}`, `idle:1 envoy:2 {"envoy":"envoy-2"}`,
		`envoy:3 envoy:2 {"envoy":"envoy-1"}`, `envoy:3 idle:1 {"envoy":"envoy-1"}`,
		`envoy:3 envoy:never-ready {"envoy":"envoy-2"}`, `envoy:3 idle:1 {"envoy":"envoy-1"}`,
	}
	if diff := cmp.Diff(want, followed()); diff != "" {
		t.Errorf("images and working container, one after the other (-want +got):\n%s", diff)
	}
}
