// Package rights holds, for each right that the shipped roles give to an account, a test that uses it. What the tests use is recorded
// from the audit logs of their API servers, by make rights, in testdata/uses.tsv.
package rights

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// right is a verb on a resource that a rule gives to an account.
type right struct {
	// account is namespace and name of a service account; that of users for roles that nothing binds.
	account string
	// file is where the role is, below config. Rights of other files than those of config/default are beside these.
	file, role string
	// rule is which one of the role's it is in.
	rule int
	// namespace is where it holds; empty for everywhere.
	namespace                   string
	verb, group, resource, name string
}

// String is what messages and the list of exceptions call it.
func (r right) String() string {
	text := r.role + ": " + r.verb + " " + r.resource
	if r.group != "" {
		text += "." + r.group
	}
	if r.name != "" {
		text += " " + r.name
	}
	return text
}

// part is the folder of an optional part of an install; empty for what users have who ask for nothing more.
func (r right) part() string {
	for _, folder := range []string{"resourcedistribution/kinds", "resourcedistribution", "multicluster", "protection/optional"} {
		if strings.HasPrefix(r.file, folder+"/") {
			return folder
		}
	}
	return ""
}

// allows reports whether the right is one for that use.
func (r right) allows(u use) bool {
	return r.account == u.account && r.verb == u.verb && (r.group == "*" || r.group == u.group) && r.isFor(u.resource) &&
		(r.namespace == "" || r.namespace == u.namespace) && (r.name == "" || r.name == u.name)
}

func (r right) isFor(resource string) bool {
	below, all := strings.CutPrefix(r.resource, "*/")
	_, subresource, _ := strings.Cut(resource, "/")
	return r.resource == resource || r.resource == "*" || all && below == subresource
}

// roles are the roles and their bindings in a folder of manifests.
type roles struct {
	roles    []role
	bindings []rbacv1.RoleBinding
}

type role struct {
	file string
	rbacv1.Role
}

// read returns all rights that the manifests give.
func read(config string) ([]right, error) {
	var all roles
	err := filepath.WalkDir(config, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		file, err := filepath.Rel(config, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := all.add(file, text); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var rights []right
	for _, r := range all.roles {
		rights = append(rights, all.of(r)...)
	}
	return rights, nil
}

func (s *roles) add(file string, text []byte) error {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var o struct {
			Kind string `json:"kind"`
			rbacv1.Role
			RoleRef  rbacv1.RoleRef   `json:"roleRef"`
			Subjects []rbacv1.Subject `json:"subjects"`
		}
		err := documents.Decode(&o)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && (o.Kind == "" || strings.HasPrefix(o.Kind, "Role") || strings.HasPrefix(o.Kind, "ClusterRole")) {
			return err
		}
		switch o.Kind {
		case "Role", "ClusterRole":
			s.roles = append(s.roles, role{file, o.Role})
		case "RoleBinding", "ClusterRoleBinding":
			s.bindings = append(s.bindings, rbacv1.RoleBinding{ObjectMeta: o.ObjectMeta, RoleRef: o.RoleRef, Subjects: o.Subjects})
		}
	}
}

// of returns the rights of a role, for each account that it is bound to.
func (s *roles) of(r role) []right {
	var all []right
	accounts := s.accounts(r)
	for n, rule := range r.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, account := range accounts {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						for _, name := range names {
							all = append(all, right{
								account: account, file: filepath.ToSlash(r.file), role: r.Name, rule: n, namespace: r.Namespace,
								verb: verb, group: group, resource: resource, name: name,
							})
						}
					}
				}
			}
		}
	}
	return all
}

// users are those who hold roles that the manifests bind to nobody.
const users = "users"

func (s *roles) accounts(r role) []string {
	var all []string
	for _, b := range s.bindings {
		if b.RoleRef.Name != r.Name || b.Namespace != r.Namespace {
			continue
		}
		for _, subject := range b.Subjects {
			all = append(all, subject.Namespace+"/"+subject.Name)
		}
	}
	if all == nil {
		return []string{users}
	}
	return all
}
