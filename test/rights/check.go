package rights

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// check returns what is wrong: rights that no test uses, uses that no right allows, and excuses for what needs none.
func check(rights []right, uses []use, excuses map[string]excuse) []string {
	var problems []string
	needed := map[string]bool{}
	for _, u := range uses {
		holders := slices.DeleteFunc(rightsFor(rights, u), func(r right) bool { return r.part() != u.part })
		switch len(holders) {
		case 0:
			problems = append(problems, fmt.Sprintf("%s may not %s %s.%s %s any more, which %s needs",
				u.account, u.verb, u.resource, u.group, u.name, u.test))
		case 1:
			needed[holders[0].needed()] = true
		}
		if u.verb == "watch" && !mayList(rights, u) {
			problems = append(problems, fmt.Sprintf("%s may watch %s.%s %s and not list them, which an API server of another version needs",
				u.account, u.resource, u.group, u.name))
		}
	}
	known := map[string]bool{}
	for _, r := range rights {
		known[r.String()] = true
		_, isExcused := excuses[r.String()]
		switch {
		case r.account == users:
		case needed[r.needed()] && isExcused:
			problems = append(problems, fmt.Sprintf("%s is used by a test, and needs no excuse", r))
		case !needed[r.needed()] && !isExcused:
			problems = append(problems, fmt.Sprintf("%s (%s) is used by no test, or another right allows the same: "+
				"take it away, or call make rights", r, r.file))
		}
	}
	for name := range excuses {
		if !known[name] {
			problems = append(problems, fmt.Sprintf("%s is no right of the manifests, and is excused", name))
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

// needed names what a test has to use for a right to be needed. To get, to list and to watch are one, where a rule gives them together: who
// may list has all that there is to get, and whether a cache is filled by a list or by a watch is up to the version of the API server.
func (r right) needed() string {
	if r.verb == "get" || r.verb == "list" || r.verb == "watch" {
		r.verb = "read"
	}
	return fmt.Sprintf("%s in rule %d", r, r.rule)
}

// mayList reports whether who watches something may list it before, as has to be unless the API server sends at first what there is.
func mayList(rights []right, u use) bool {
	u.verb = "list"
	return slices.ContainsFunc(rights, func(r right) bool { return r.allows(u) && (r.part() == "" || r.part() == u.part) })
}

// rightsFor returns the rights that allow a use. What config/default gives counts alone where it is enough: the rights beside it are for
// what it does not allow. Optional parts do not count on each other, so where several allow it, those of the first are returned.
func rightsFor(rights []right, u use) []right {
	parts := map[string][]right{}
	for _, r := range rights {
		if r.allows(u) {
			parts[r.part()] = append(parts[r.part()], r)
		}
	}
	if basic := parts[""]; len(basic) > 0 {
		return basic
	}
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		return parts[part]
	}
	return nil
}

// contained returns which rights contain others of the same account.
func contained(rights []right, excuses map[string]excuse) []string {
	var problems []string
	for i, r := range rights {
		if _, isExcused := excuses[r.String()]; isExcused || r.account == users {
			continue
		}
		asked := use{account: r.account, verb: r.verb, group: r.group, resource: r.resource, namespace: r.namespace, name: r.name}
		for j, other := range rights {
			if i != j && other.allows(asked) && (other.part() == "" || other.part() == r.part()) {
				problems = append(problems, fmt.Sprintf("%s (%s) is contained in %s (%s)", r, r.file, other, other.file))
			}
		}
	}
	return problems
}

// excuse says why a right is given that no request of a test shows.
type excuse struct {
	// why is the reason, and test what fails without the right, as the table has it.
	why, test string
}

const (
	launchPriority = "the rights of launch priority can be taken away from kruise-manager-role (docs/security.md), and this one stays"
	blocking       = "OwnerReferencesPermissionEnforcement asks for it, without a request, when an object is made whose owner waits for it"
)

// excused are the rights that the manifests give for another reason than a request of a test.
func excused() map[string]excuse {
	all := map[string]excuse{
		"kruise-webhook-role: get configmaps kruise-configuration": {launchPriority,
			"internal/manager TestAControllerThatLacksRightsIsOff"},
	}
	for _, verb := range []string{"get", "list", "watch", "create", "patch", "delete"} {
		all["kruise-resourcedistribution-role: "+verb+" configmaps"] = excuse{launchPriority,
			"internal/manager TestShippedRoleGrantsWhatIsNeeded"}
	}
	for role, owners := range map[string][]string{
		"kruise-manager-role": {
			"advancedcronjobs.apps.kruise.io", "broadcastjobs.apps.kruise.io", "clonesets.apps.kruise.io", "daemonsets.apps.kruise.io",
			"imagelistpulljobs.apps.kruise.io", "pods", "sidecarsets.apps.kruise.io", "statefulsets.apps.kruise.io",
			"uniteddeployments.apps.kruise.io",
		},
		"kruise-resourcedistribution-role": {"resourcedistributions.apps.kruise.io"},
		"kruise-rollout-role": {
			"batchreleases.rollouts.kruise.io", "deployments.apps", "rollouts.rollouts.kruise.io", "trafficroutings.rollouts.kruise.io",
		},
	} {
		for _, owner := range owners {
			resource, group, hasGroup := strings.Cut(owner, ".")
			name := role + ": update " + resource + "/finalizers"
			if hasGroup {
				name += "." + group
			}
			all[name] = excuse{blocking, "test/api/install TestOwnersMayBlockTheirDeletion"}
		}
	}
	return all
}
