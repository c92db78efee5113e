package sidecarset

import (
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
	e.eventually("the containers are "+want, func() error {
		if p := e.pod("web-0"); twins(p) != want || !isReady(p) {
			return fmt.Errorf("they are %s, ready %t", twins(p), isReady(p))
		}
		return e.countsAre(1, 1, 1, 1)
	})
}

// TestHotUpgrade lets the second container take over from the first one and back, then fails to, and goes back.
func TestHotUpgrade(t *testing.T) {
	e := newEnv(t)
	e.newSet(hotEnvoy)
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
	e.eventually("there is an event", func() error {
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
	e.eventually("the new container fails", func() error {
		if got := twins(e.pod("web-0")); got != `envoy:3 envoy:never-ready {"envoy":"envoy-2"}` {
			return fmt.Errorf("the containers are %s", got)
		}
		return nil
	})
	e.rests("the old container serves", func() error {
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
}
