package simulate

import (
	"fmt"
	"math/rand"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestEphemeralContainersAreAdded(t *testing.T) {
	c := newCluster()
	k := NewKubelet(c)
	create(t, c, podNamed("a"))
	settlePod(k, c, "a")
	connection := c.Connect("controller", rand.New(rand.NewSource(1)))
	add := func(patch string) error {
		return connection.Patch(t.Context(), podNamed("a"), ephemeralPart, types.StrategicMergePatchType, []byte(patch))
	}
	if err := add(`{"metadata":{"labels":{"x":"y"}},"spec":{"hostname":"h","ephemeralContainers":[{"name":"debug","image":"busybox:1"}]}}`); err != nil {
		t.Fatal(err)
	}
	p := settlePod(k, c, "a")
	if p.Spec.Hostname != "" || p.Labels["x"] != "" || len(p.Spec.EphemeralContainers) != 1 {
		t.Errorf("labels %v, spec %+v: only ephemeral containers can be written", p.Labels, p.Spec)
	}
	if s := p.Status.EphemeralContainerStatuses; len(s) != 1 || s[0].Name != "debug" || s[0].State.Running == nil || s[0].Ready {
		t.Errorf("the statuses are %+v", s)
	}
	for name, patch := range map[string]string{
		"another image":      `{"spec":{"ephemeralContainers":[{"name":"debug","image":"busybox:2"}]}}`,
		"one that is gone":   `{"spec":{"ephemeralContainers":null}}`,
		"the name of a main": `{"spec":{"ephemeralContainers":[{"name":"app","image":"busybox:1"}]}}`,
	} {
		before := c.pod("a")
		if err := add(patch); err == nil || c.pod("a") != before {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if err := add(fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"ephemeralContainers":[{"name":"more","image":"busybox:1"}]}}`, "1")); err == nil {
		t.Error("an old version was written over")
	}
	if p := c.pod("a"); p.Status.Phase != corev1.PodRunning || len(p.Spec.EphemeralContainers) != 1 {
		t.Errorf("in the end it is %+v", p)
	}
}
