package audit

import (
	"slices"
	"strings"
)

// Use is what an account did with a right that it has.
type Use struct {
	// Account is namespace and name of a service account, such as kruise-system/kruise-manager.
	Account string
	// Verb, Group and Resource are those of a rule. The resource has its subresource, as in pods/status.
	Verb, Group, Resource string
	// Namespace is where it was; empty for all namespaces, and for what is in none.
	Namespace string
	// Name is that of the object; empty for a list, a creation, and where the name is up to users.
	Name string
}

// Uses returns what service accounts have done, in no order, each thing once. Requests that were refused, or came to nothing, are none:
// whoever makes them may do without the right.
func Uses(file string) ([]Use, error) {
	seen := map[Use]bool{}
	err := every(file, func(e entry) { // of a watch that goes on, only the beginning is in the log
		account, isAccount := strings.CutPrefix(e.User.Name, "system:serviceaccount:")
		if !isAccount || e.ObjectRef.Resource == "" || e.ResponseStatus.Code >= 300 {
			return
		}
		u := Use{
			Account: strings.Replace(account, ":", "/", 1), Verb: e.Verb, Group: e.ObjectRef.Group, Resource: e.resource(),
			Namespace: e.ObjectRef.Namespace,
		}
		if isNamed(u.Resource) {
			u.Name = e.ObjectRef.Name
		}
		seen[u] = true
	})
	var all []Use
	for u := range seen {
		all = append(all, u)
	}
	return all, err
}

// isNamed reports whether rules name single objects of a resource.
func isNamed(resource string) bool {
	return slices.Contains([]string{
		"leases", "secrets", "configmaps", "mutatingwebhookconfigurations", "validatingwebhookconfigurations", "customresourcedefinitions",
	}, resource)
}
