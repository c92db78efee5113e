package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Older is what tells of an installation of OpenKruise, and what a takeover meets.
type Older struct {
	// Managers are its Deployments with their images, as namespace/name: image.
	Managers []string
	// Objects are how many there are of each kind of Kruise.
	Objects map[string]int
	// Updating are Pods in which an update in place is under way, as namespace/name.
	Updating []string
	// Hooked are Pods that a lifecycle hook holds.
	Hooked []string
	// Protected are objects with a label of deletion protection, which has no effect in OpenKruise while its gate is off.
	Protected []string
	// Releasing are Rollouts in the middle of a release.
	Releasing []string
}

// Takeover is what will happen when Kruise is installed over what there is.
type Takeover struct {
	// Found says what there is.
	Found []string `json:"found"`
	// Against is what to settle before; Steps is what happens then, in order; Back is how to go back.
	Against []Finding `json:"against"`
	Steps   []string  `json:"steps"`
	Back    []string  `json:"back"`
}

// Plan returns what a takeover will do.
func Plan(f Facts) Takeover {
	t := Takeover{Found: f.found()}
	var against list
	if f.Minor > 0 && f.Minor < minor {
		against.add(Broken, "the API server is "+f.Server, fmt.Sprintf("Kruise relies on what Kubernetes has since 1.%d", minor),
			"upgrade Kubernetes first")
	}
	for _, p := range f.Parts {
		for _, d := range p.Definitions {
			for _, version := range d.Stored {
				if d.There && version != "v1alpha1" && version != "v1beta1" {
					against.add(Broken, fmt.Sprintf("objects of %s may be stored in %s", d.Name, version),
						"Kruise does not know that version",
						"write all of them anew in v1beta1, and take the version out of status.storedVersions")
				}
			}
		}
	}
	if n := len(f.Older.Protected); n > 0 {
		against.add(Warning, fmt.Sprintf("%d objects have a label of deletion protection: %s", n, some(f.Older.Protected)),
			"it takes effect with the takeover, also where the gate of OpenKruise was off",
			"take it off what may be deleted: kubectl label TYPE NAME policy.kruise.io/delete-protection-")
	}
	if n := len(f.Older.Releasing); n > 0 {
		against.add(Warning, fmt.Sprintf("%d Rollouts are in the middle of a release: %s", n, some(f.Older.Releasing)),
			"they go on from their step; a step that waits for an approval goes on waiting", "nothing has to be done; to be careful, "+
				"end the releases before")
	}
	for _, what := range f.Unread {
		against.add(Warning, what, "it may hold something that matters here", "ask as somebody who may read it")
	}
	t.Against = against
	if len(t.Found) == 0 {
		return t
	}
	t.Steps = f.steps()
	t.Back = []string{
		"If the CustomResourceDefinitions of OpenKruise have no v1beta1, have every object stored in v1alpha1 first: docs/takeover.md " +
			"says how.",
		"Scale our managers to 0: kubectl -n kruise-system scale deployment/kruise-controller-manager --replicas=0.",
		"Delete our admission policies and their bindings, whose names begin with kruise-: they bind the manager's account to what our " +
			"manager does, and refuse deletions whatever gates OpenKruise has.",
		"Apply the manifests of OpenKruise again, its CustomResourceDefinitions last: it reads both versions of what is stored.",
		"Pods stay as they are: revisions, their names and the annotations of Pods are those that OpenKruise writes itself.",
	}
	return t
}

func (f Facts) found() []string {
	var out []string
	for _, m := range f.Older.Managers {
		out = append(out, "manager "+m)
	}
	for _, p := range f.Parts {
		if p.Lease != nil && p.Lease.Fresh(f.Now) {
			out = append(out, fmt.Sprintf("a leader: Lease %s of %s", p.Lease.Name, p.Lease.Holder))
		}
		older := 0
		for _, d := range p.Definitions {
			if d.There && d.Storage != "" && len(d.Ours) > 0 && (d.Storage != d.Ours[0] || len(d.Stored) > 1) {
				older++
			}
		}
		if older > 0 {
			out = append(out, fmt.Sprintf("%d kinds with objects that may be stored in an older version", older))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(f.Older.Objects)) {
		if n := f.Older.Objects[kind]; n > 0 {
			out = append(out, fmt.Sprintf("%d objects of kind %s", n, kind))
		}
	}
	return out
}

// steps says what happens, in the order in which it does.
func (f Facts) steps() []string {
	out := []string{
		"You scale the managers of OpenKruise to 0. Pods run on; writes of Kruise's kinds are refused until the new managers serve its " +
			"webhooks.",
		"You apply CustomResourceDefinitions, rights and managers of Kruise, under the same names. No stored object is written by that.",
		"The new manager waits for the Lease, which is the same: both never lead at once.",
		"It writes its CA and the webhooks for Pods into the configurations, and is ready then.",
		"Controllers read all objects. Revisions are found again by their names and bytes: no Pod of a workload at rest is written to, " +
			"restarted or recreated.",
	}
	if n := len(f.Older.Updating); n > 0 {
		out = append(out, fmt.Sprintf("%d Pods in the middle of an update in place go on from where they are: %s.", n,
			some(f.Older.Updating)))
	}
	if n := len(f.Older.Hooked); n > 0 {
		out = append(out, fmt.Sprintf("%d Pods wait for a lifecycle hook as before: %s.", n, some(f.Older.Hooked)))
	}
	return append(out,
		"Objects are stored in v1beta1 when they are written next; clients of v1alpha1 go on reading and writing that version.")
}

// some names the first few.
func some(names []string) string {
	const few = 3
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
