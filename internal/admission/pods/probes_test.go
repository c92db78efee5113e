package pods

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inject"
)

// asking is a cluster with the given markers in namespace default, and a node, virtual-1, that has no machine.
type asking struct {
	markers []*v1alpha1.PodProbeMarker
	err     error
}

func (a asking) Markers(_ context.Context, namespace string) ([]*v1alpha1.PodProbeMarker, error) {
	if namespace != "default" {
		return nil, a.err
	}
	return a.markers, a.err
}

func (asking) HasMachine(_ context.Context, node string) (bool, error) {
	return node != "virtual-1", nil
}

func markerOf(t fataler, name, spec string) *v1alpha1.PodProbeMarker {
	t.Helper()
	m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &m.Spec); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestProvidersAreTold(t *testing.T) {
	const minecraft = `{selector: {matchLabels: {app: web}}, probes: [{name: healthy, containerName: minecraft,
  probe: {exec: {command: [bash, /data/probe.sh]}}, podConditionType: game.kruise.io/healthy, markerPolicy: [{state: Succeeded, labels: {a: b}}]}]}`
	const want = `[{"name":"healthy","containerName":"minecraft","probe":{"exec":{"command":["bash","/data/probe.sh"]}},"podConditionType":"game.kruise.io/healthy"}]`
	ofSidecar := strings.Replace(minecraft, "containerName: minecraft", "containerName: agent", 1)
	set := inject.NewCandidate(setOf(t, "log", `{containers: [{name: agent}]}`))
	for name, tc := range map[string]struct {
		marker, pod string
		want        string
	}{
		"it is not known where the Pod will run": {minecraft, `{}`, want},
		"a virtual node":                         {minecraft, `{nodeName: virtual-1}`, want},
		"a node with a machine":                  {minecraft, `{nodeName: node-1}`, ""},
		"a container that is injected":           {ofSidecar, `{}`, strings.Replace(want, "minecraft", "agent", 1)},
		"a container that there is not":          {strings.Replace(minecraft, "containerName: minecraft", "containerName: x", 1), `{}`, ""},
		"another Pod":                            {strings.Replace(minecraft, "app: web", "app: db", 1), `{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := chainOf(known{candidates: []*inject.Candidate{set}})
			c.Steps = append(c.Steps, Probes(asking{markers: []*v1alpha1.PodProbeMarker{markerOf(t, "m", tc.marker)}}))
			pod := strings.TrimSuffix(tc.pod, "}")
			if pod != "{" {
				pod += ", "
			}
			raw := jsonOf(t, `{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {app: web}}, spec: `+pod+`containers: [{name: minecraft, image: a}]}}`)
			response, out := create(t, c, raw)
			if !response.Allowed {
				t.Fatalf("refused: %v", response.Result)
			}
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(out); err != nil {
				t.Fatal(err)
			}
			names := ""
			if tc.want != "" {
				names = "m"
			}
			if a := u.GetAnnotations(); a[keys.PodProbes] != tc.want || a[keys.PodProbeMarkers] != names {
				t.Errorf("annotations %v, want %s of %q", a, tc.want, names)
			}
			if again, _ := create(t, c, out); again.Patches != nil && tc.want != "" {
				for _, p := range again.Patches {
					if strings.Contains(p.Path, "podprobe") {
						t.Errorf("asked again it says %v", p)
					}
				}
			}
		})
	}
	c := Chain{Steps: []Step{Probes(asking{err: errors.New("the cache is down")})}}
	if response, _ := create(t, c, jsonOf(t, `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a}]}}`)); response.Allowed {
		t.Error("a Pod is let through though the markers are not known")
	}
}
