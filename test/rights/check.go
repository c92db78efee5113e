package rights

import (
	"fmt"
	"slices"
)

// check returns what is wrong: rights that no test uses, uses that no right allows, and excuses for what needs none.
func check(rights []right, uses []use, excuses map[string]excuse) []string {
	var problems []string
	needed := map[string]bool{}
	for _, u := range uses {
		holders := rightsFor(rights, u)
		switch len(holders) {
		case 0:
			problems = append(problems, fmt.Sprintf("%s may not %s %s.%s %s any more, which %s needs", u.account, u.verb, u.resource, u.group, u.name, u.test))
		case 1:
			needed[holders[0].String()] = true
		}
	}
	known := map[string]bool{}
	for _, r := range rights {
		known[r.String()] = true
		_, isExcused := excuses[r.String()]
		switch {
		case r.account == users:
		case needed[r.String()] && isExcused:
			problems = append(problems, fmt.Sprintf("%s is used by a test, and needs no excuse", r))
		case !needed[r.String()] && !isExcused:
			problems = append(problems, fmt.Sprintf("%s (%s) is used by no test, or another right allows the same: take it away, or call make rights", r, r.file))
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

// rightsFor returns the rights that allow a use. What config/default gives counts alone where it is enough: the rights beside it are for what
// it does not allow.
func rightsFor(rights []right, u use) []right {
	var basic, optional []right
	for _, r := range rights {
		if !r.allows(u) {
			continue
		}
		if r.isOptional() {
			optional = append(optional, r)
		} else {
			basic = append(basic, r)
		}
	}
	if len(basic) > 0 {
		return basic
	}
	return optional
}

// excuse says why a right is given that no request of a test shows.
type excuse struct {
	// why is the reason, and test what fails without the right, as the table has it.
	why, test string
}

func excused() map[string]excuse { return map[string]excuse{} }
