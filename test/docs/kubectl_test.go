package docs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// crds returns the definitions of all kinds of ours.
func (b *book) crds() []*apiextensionsv1.CustomResourceDefinition {
	b.Helper()
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, folder := range []string{"config/crd/bases", "config/rollouts/crd"} {
		files, err := filepath.Glob(filepath.Join(b.root, folder, "*.yaml"))
		if err != nil {
			b.Fatal(err)
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict([]byte(b.file(filepath.Join(folder, filepath.Base(file)))), crd); err != nil {
				b.Fatalf("%s: %v", file, err)
			}
			out = append(out, crd)
		}
	}
	if len(out) < 15 {
		b.Fatalf("there are %d CRDs only", len(out))
	}
	return out
}

// types returns all names of types that kubectl knows: ours, and those of Kubernetes that pages speak of.
func (b *book) types() map[string]bool {
	b.Helper()
	out := map[string]bool{}
	for _, crd := range b.crds() {
		names := crd.Spec.Names
		for _, name := range slices.Concat([]string{names.Plural, names.Singular, strings.ToLower(names.Kind)}, names.ShortNames) {
			out[name] = true
			out[name+"."+crd.Spec.Group] = true
			for _, version := range crd.Spec.Versions {
				out[name+"."+version.Name+"."+crd.Spec.Group] = true
			}
		}
	}
	for _, name := range strings.Fields(`all clusterrole clusterrolebinding configmap configmaps cm crd customresourcedefinition daemonset daemonset.apps
		deploy deployment deployment.apps deployments endpointslices event events flowschemas hpa ing ingress job jobs lease leases mutatingwebhookconfiguration
		namespace networkpolicy node nodes ns pdb pod pods po prioritylevelconfigurations pv pvc quota rolebinding secret secrets service serviceaccount services statefulset statefulset.apps
		statefulsets.apps sts svc token validatingadmissionpolicy validatingadmissionpolicybinding validatingwebhookconfiguration`) {
		out[name] = true
	}
	return out
}

// valued are the flags of kubectl behind which a value of their own stands.
func valued() []string {
	return []string{
		"-n", "--namespace", "-l", "-f", "-k", "-o", "-c", "-p", "--context", "--type", "--kubeconfig", "--as", "--selector", "--field-selector", "--sort-by",
		"--subresource", "--image", "--replicas", "--timeout", "--for", "--from", "--template", "-i", "--as-group",
	}
}

// kubectl checks the arguments of kubectl: its verb, the type of what it is called for, the path of fields, and files of the repository.
func (c *checker) kubectl(args []string) error {
	words := plain(args)
	if len(words) > 0 && words[0] == "kruise" {
		at := slices.Index(args, "kruise")
		return kruise(slices.Concat(args[:at], args[at+1:]))
	}
	for i, arg := range args {
		if i > 0 && slices.Contains([]string{"-f", "-k"}, args[i-1]) && strings.Contains(arg, "/") && !strings.HasPrefix(arg, "dist/") &&
			!strings.Contains(arg, "://") && !c.exists(arg) {
			return fmt.Errorf("there is no file %s", arg)
		}
	}
	if len(words) == 0 || isPlaceholder(words[0]) {
		return nil
	}
	switch verb := words[0]; verb {
	case "get", "describe", "delete", "wait", "annotate", "label", "patch", "scale", "edit":
		return c.typesOf(words[1:])
	case "create":
		return c.typesOf(words[1:])
	case "rollout":
		if len(words) > 2 {
			return c.typesOf(words[2:])
		}
	case "explain":
		if len(words) > 1 {
			return c.explain(words[1], args)
		}
	case "apply", "replace", "logs", "exec", "debug", "drain", "cordon", "uncordon", "kustomize", "config", "port-forward", "auth", "api-resources",
		"set", "taint", "plugin", "krew", "run", "attach", "top", "version", "completion", "proxy", "cp", "evict", "autoscale", "expose":
	default:
		return fmt.Errorf("kubectl has no command %s", verb)
	}
	return nil
}

// plain returns the words that are neither flags nor values of flags, up to "--".
func plain(args []string) []string {
	var out []string
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if !strings.HasPrefix(arg, "-") && (i == 0 || !slices.Contains(valued(), args[i-1])) {
			out = append(out, arg)
		}
	}
	return out
}

// typesOf checks TYPE, TYPE,TYPE and TYPE/NAME.
func (c *checker) typesOf(words []string) error {
	if len(words) == 0 {
		return nil
	}
	for one := range strings.SplitSeq(words[0], ",") {
		name, _, _ := strings.Cut(one, "/")
		if name = strings.ToLower(name); name != "" && !c.types[name] && !strings.Contains(name, "$") && name != "type" {
			return fmt.Errorf("there is no type %s", name)
		}
	}
	return nil
}

// explain checks that a field of a kind of ours is there.
func (c *checker) explain(of string, args []string) error {
	name, path, _ := strings.Cut(of, ".")
	version := ""
	for _, arg := range args {
		if v, is := strings.CutPrefix(arg, "--api-version="); is {
			_, version, _ = strings.Cut(v, "/")
		}
	}
	for _, crd := range c.crds() {
		names := crd.Spec.Names
		if !slices.Contains(slices.Concat([]string{names.Plural, names.Singular}, names.ShortNames), name) {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if version == "" || v.Name == version {
				return fieldOf(v.Schema.OpenAPIV3Schema, path)
			}
		}
		return fmt.Errorf("%s has no version %s", name, version)
	}
	return c.typesOf([]string{name})
}

func fieldOf(schema *apiextensionsv1.JSONSchemaProps, path string) error {
	if path == "" {
		return nil
	}
	name, rest, _ := strings.Cut(path, ".")
	if schema.Items != nil {
		schema = schema.Items.Schema
	}
	next, is := schema.Properties[name]
	if !is {
		return fmt.Errorf("there is no field %s", name)
	}
	return fieldOf(&next, rest)
}
