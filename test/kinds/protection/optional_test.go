package protection

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// apply applies one of the optional manifests, and returns what takes it away again.
func (g *guard) apply(name string) (remove func()) {
	g.Helper()
	root, err := cluster.Root()
	g.Must(err)
	file := filepath.Join(root, "config/protection/optional", name)
	g.Must(g.ApplyFile(g.Ctx, file))
	return func() {
		g.Ctx = g.Afterwards()
		_, err := g.Kubectl(g.Ctx, "delete", "-f", file)
		g.Must(err)
	}
}

// TestUnlockedUntil: where the label sticks, an annotation with a time lets it be removed until then.
func TestUnlockedUntil(t *testing.T) {
	g := newSerialGuard(t)
	remove := g.apply("sticky.yaml")
	o := g.Make("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {" + deletionLabel + ": Always}}}")
	defer func() {
		remove()
		g.Eventually("the label does not stick any more", func() error {
			return g.Client.Patch(g.Ctx, o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+deletionLabel+`":null}}}`)))
		})
	}()
	patch := func(label, until string) error {
		return g.Client.Patch(g.Ctx, o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(
			`{"metadata":{"labels":{%q:%s},"annotations":{"policy.kruise.io/delete-protection-unlock":"settings","policy.kruise.io/delete-protection-unlock-until":%q}}}`,
			deletionLabel, label, until))), client.DryRunAll)
	}
	at := func(from time.Duration) string { return time.Now().Add(from).UTC().Format(time.RFC3339) }
	g.Eventually("a time that has passed unlocks nothing", func() error {
		return refusedWith(patch("null", at(-time.Minute)), "could be removed until")
	})
	for what, tc := range map[string]struct{ label, until, want string }{
		"removed in time":           {label: "null", until: at(time.Minute)},
		"weakened in time":          {label: `"Cascading"`, until: at(time.Minute)},
		"weakened too late":         {label: `"Cascading"`, until: at(-time.Minute), want: "write a later time"},
		"kept, with an older time":  {label: `"Always"`, until: at(-time.Minute)},
		"kept, and the time is odd": {label: `"Always"`, until: "tomorrow", want: "is no time such as"},
		"removed, and it is odd":    {label: "null", until: "2030-01-31 12:00", want: "is no time such as"},
		"until a 30th":              {label: "null", until: "2090-04-30T12:00:00Z"},
		"until a 31st":              {label: "null", until: "2090-01-31T12:00:00Z"},
		"until 29 February":         {label: "null", until: "2092-02-29T12:00:00Z"},
		"until no day":              {label: "null", until: "2090-02-29T12:00:00Z", want: "is no time such as"},
	} {
		if err := patch(tc.label, tc.until); tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", what, err, tc.want)
		}
	}
}

// TestDaysOfUnlocking: of the times that the policy takes, each is one that CEL can read, and every day is among them.
func TestDaysOfUnlocking(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "config/protection/optional/sticky.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`variables\.until\.matches\('(.*)'\)`).FindSubmatch(text)
	if found == nil {
		t.Fatal("sticky.yaml has no pattern of times")
	}
	pattern := regexp.MustCompile(string(found[1]))
	for _, year := range []int{0, 999, 1900, 1999, 2000, 2026, 2028, 2100, 2104, 2400, 9999} {
		for month := range 14 {
			for day := range 33 {
				at := fmt.Sprintf("%04d-%02d-%02dT23:59:59Z", year, month, day)
				_, err := time.Parse(time.RFC3339, at)
				if got, want := pattern.MatchString(at), err == nil && year > 999; got != want {
					t.Errorf("%s is taken for a time: %v, want %v", at, got, want)
				}
			}
		}
	}
}

// TestScaleProtection: a workload with the label is not scaled to 0, neither by an update nor through its scale subresource, and everything else goes.
func TestScaleProtection(t *testing.T) {
	const label, refused = "policy.kruise.io/scale-protection", "forbidden by policy.kruise.io/scale-protection=Always"
	g := newSerialGuard(t)
	defer g.apply("scale.yaml")()
	zero := func(resource, name string) error {
		_, err := g.Kubectl(g.Ctx, "-n", g.Namespace, "scale", "--replicas=0", "--dry-run=server", resource, name)
		return err
	}
	refuses := func(err error) error {
		if err == nil || !strings.Contains(err.Error(), refused) {
			return errors.Join(errors.New("it is not refused with "+refused), err)
		}
		return nil
	}
	for _, s := range samples("kept") {
		if !strings.Contains(s.holds, "replicas") || s.status != "" {
			continue
		}
		o := g.Manifest(s.text)
		name := o.GetName()
		g.Must(g.Client.Create(g.Ctx, o))
		patch := func(text string, options ...client.PatchOption) error {
			return g.Client.Patch(g.Ctx, o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)), options...)
		}
		toZero := func() error { return patch(`{"spec":{"replicas":0}}`, client.DryRunAll) }
		g.Must(zero(s.resource, name))
		g.Must(toZero())
		g.Must(patch(`{"metadata":{"labels":{"` + label + `":"Always"}}}`))
		g.Eventually(s.resource+" can't be scaled to 0 by kubectl", func() error { return refuses(zero(s.resource, name)) })
		g.Eventually(s.resource+" can't be updated to 0", func() error { return refuses(toZero()) })
		if _, err := g.Kubectl(g.Ctx, "-n", g.Namespace, "scale", "--replicas=1", "--dry-run=server", s.resource, name); err != nil {
			t.Errorf("scaling %s to 1: %v", s.resource, err)
		}
		if err := patch(`{"metadata":{"labels":{"`+label+`":"Sometimes"}}}`, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "write Always") {
			t.Errorf("%s with another value: %v", s.resource, err)
		}
		if err := refuses(patch(`{"metadata":{"labels":{"`+label+`":null}},"spec":{"replicas":0}}`, client.DryRunAll)); err != nil {
			t.Errorf("%s that loses the label with its replicas: %v", s.resource, err)
		}
		g.Must(patch(`{"metadata":{"labels":{"` + label + `":null}}}`))
		g.Eventually(s.resource+" without the label can be scaled to 0", func() error { return zero(s.resource, name) })
		g.Must(toZero())
	}
}
