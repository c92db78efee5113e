package protection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contents are what is in a namespace, by the kind of its list, and which lists can't be read.
type contents struct {
	objects map[string][]object
	fails   map[string]error
}

func anyContents() *rapid.Generator[contents] {
	return rapid.Custom(func(t *rapid.T) contents {
		c := contents{map[string][]object{}, map[string]error{}}
		draw := func(kind string, phases ...string) {
			// Runs of equal objects fill pages.
			for range rapid.IntRange(0, 4).Draw(t, kind) {
				o := object{
					name: "o", phase: rapid.SampledFrom(phases).Draw(t, "phase"), isLeaving: rapid.Bool().Draw(t, "leaving"),
					value: rapid.SampledFrom([]string{"", "Always", "Cascading", "never"}).Draw(t, "value"), replicas: rapid.Int64Range(0, 1).Draw(t, "replicas"),
				}
				c.objects[kind] = append(c.objects[kind], slicesOf(o, rapid.SampledFrom([]int{1, 1, 99, 100, 101, 250}).Draw(t, "number"))...)
			}
			if c.objects[kind] == nil {
				c.objects[kind] = []object{}
			}
			if rapid.IntRange(0, 9).Draw(t, "fails "+kind) == 0 {
				c.fails[kind] = errors.New("no answer")
			}
		}
		draw("PodList", "Pending", "Running", "Succeeded", "Failed", "Unknown")
		draw("PersistentVolumeClaimList", "Pending", "Bound", "Lost")
		draw("CloneSetList", "")
		return c
	})
}

// isUsed reports whether there is something in a namespace that counts, or that may count.
func (c contents) isUsed() bool {
	for kind, objects := range c.objects {
		for _, o := range objects {
			counts := kind == "PodList" && o.phase != "Succeeded" && o.phase != "Failed" ||
				kind == "PersistentVolumeClaimList" && (o.phase == "Bound" || o.value == "Always") ||
				kind == "CloneSetList" && (o.value == "Always" || o.value == "Cascading" && o.replicas > 0)
			if counts && !o.isLeaving {
				return true
			}
		}
	}
	return len(c.fails) > 0
}

// broken says what is wrong with how the deletion of a namespace with the label is judged, by what a reader shows.
func (c contents) broken(t rapid.TB, reader func(*api) client.Reader) string {
	a := &api{t: t, objects: c.objects, fails: c.fails}
	response := Namespace(Options{Live: reader(a), Contents: true}).Handle(context.Background(), namespaces.deletion(t, shop("Cascading")))
	switch isUsed := c.isUsed(); {
	case isUsed && response.Allowed:
		return "it is in use, and deleted"
	case !isUsed && !response.Allowed:
		return fmt.Sprintf("it is not in use, and kept: %s", response.Result.Message)
	case len(a.served) > 40:
		return fmt.Sprintf("%d lists were read", len(a.served))
	}
	return ""
}

// TestNamespaceInUseIsNeverDeleted: whatever there is in a namespace with the label, and whatever can't be read, in whatever pages it comes, the
// namespace may be deleted if and only if nothing that counts is in it.
func TestNamespaceInUseIsNeverDeleted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		honest := func(a *api) client.Reader { return a }
		if problem := anyContents().Draw(t, "contents").broken(t, honest); problem != "" {
			t.Fatal(problem)
		}
	})
}

// mistaken is a reader that does wrong to what it reads.
type mistaken struct {
	*api
	list func(into client.ObjectList, options client.ListOptions, honest func(...client.ListOption) error) error
}

func (m mistaken) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	return m.list(into, o, func(options ...client.ListOption) error { return m.api.List(ctx, into, options...) })
}

// TestMistakesShow counts wrongly on purpose: the property must see each mistake.
func TestMistakesShow(t *testing.T) {
	const deleted, kept = "it is in use, and deleted", "it is not in use, and kept"
	for name, tc := range map[string]struct {
		list func(into client.ObjectList, options client.ListOptions, honest func(...client.ListOption) error) error
		want string
	}{
		"only the first page is read": {func(into client.ObjectList, o client.ListOptions, honest func(...client.ListOption) error) error {
			err := honest(&o)
			into.SetContinue("")
			into.SetRemainingItemCount(nil)
			return err
		}, deleted},
		"what can't be read counts as nothing": {func(_ client.ObjectList, o client.ListOptions, honest func(...client.ListOption) error) error {
			_ = honest(&o)
			return nil
		}, deleted},
		"Pods that have ended count": {func(_ client.ObjectList, o client.ListOptions, honest func(...client.ListOption) error) error {
			o.FieldSelector = nil
			return honest(&o)
		}, kept},
		"protected objects are not looked for": {func(_ client.ObjectList, o client.ListOptions, honest func(...client.ListOption) error) error {
			if o.LabelSelector != nil {
				return nil
			}
			return honest(&o)
		}, deleted},
	} {
		t.Run(name, func(t *testing.T) {
			const tries = 2000
			for seed := range tries {
				wrong := func(a *api) client.Reader { return mistaken{a, tc.list} }
				if strings.Contains(anyContents().Example(seed).broken(t, wrong), tc.want) {
					return
				}
			}
			t.Errorf("%d namespaces do not show it as %q", tries, tc.want)
		})
	}
}
