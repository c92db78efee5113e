package lint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	suite "github.com/seed-69ecc383/kruise/config/crd"
	rollouts "github.com/seed-69ecc383/kruise/config/rollouts/crd"
)

// definition is a CustomResourceDefinition, with what its versions come to.
type definition struct {
	apiextensionsv1.CustomResourceDefinitionSpec
	versions []*version
}

// version is one version of a kind.
type version struct {
	apiextensionsv1.CustomResourceDefinitionVersion
	namespaced bool
	// compile compiles the schema when it is first needed: rules in CEL take time.
	compile func() (*compiled, error)
}

// compiled is a schema that can be asked.
type compiled struct {
	structural *structural.Structural
	types      validation.SchemaValidator
	rules      *cel.Validator
}

// catalog reads the definition of a kind when it is first needed: all of them together are a megabyte of YAML.
type catalog map[schema.GroupKind]func() (*definition, error)

// groupOf and kindOf match where a CustomResourceDefinition says them.
var (
	groupOf = regexp.MustCompile(`(?m)^ {2}group: (\S+)$`)
	kindOf  = regexp.MustCompile(`(?m)^ {4}kind: (\S+)$`)
)

// definitions returns the CustomResourceDefinitions that are shipped.
func definitions() (catalog, error) {
	out := catalog{}
	for _, files := range []fs.FS{suite.Bases, rollouts.Bases} {
		err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(files, path)
			if err != nil {
				return err
			}
			group, kind := groupOf.FindSubmatch(text), kindOf.FindSubmatch(text)
			if group == nil || kind == nil {
				return fmt.Errorf("%s says no group or no kind", path)
			}
			out[schema.GroupKind{Group: string(group[1]), Kind: string(kind[1])}] = sync.OnceValues(func() (*definition, error) {
				var crd apiextensionsv1.CustomResourceDefinition
				if err := yaml.Unmarshal(text, &crd); err != nil {
					return nil, fmt.Errorf("reading %s: %w", path, err)
				}
				return newDefinition(crd.Spec), nil
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func newDefinition(spec apiextensionsv1.CustomResourceDefinitionSpec) *definition {
	d := &definition{CustomResourceDefinitionSpec: spec}
	for _, v := range spec.Versions {
		d.versions = append(d.versions, &version{
			CustomResourceDefinitionVersion: v, namespaced: spec.Scope == apiextensionsv1.NamespaceScoped,
			compile: sync.OnceValues(func() (*compiled, error) { return compile(v.Schema.OpenAPIV3Schema) }),
		})
	}
	return d
}

func compile(from *apiextensionsv1.JSONSchemaProps) (*compiled, error) {
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(from, props, nil); err != nil {
		return nil, err
	}
	shape, err := structural.NewStructural(props)
	if err != nil {
		return nil, err
	}
	types, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, err
	}
	return &compiled{structural: shape, types: types, rules: cel.NewValidator(shape, true, celconfig.PerCallLimit)}, nil
}

// version returns a served version by its name; nil if there is none.
func (d *definition) version(name string) *version {
	i := slices.IndexFunc(d.versions, func(v *version) bool { return v.Name == name && v.Served })
	if i < 0 {
		return nil
	}
	return d.versions[i]
}

// served returns the names of the versions that are served.
func (d *definition) served() []string {
	var out []string
	for _, v := range d.versions {
		if v.Served {
			out = append(out, v.Name)
		}
	}
	return out
}

// decode fills in the defaults of the schema and takes out what the schema does not know, as the API server does with all that it reads. It
// returns the paths of fields that are taken out.
func (v *version) decode(o *unstructured.Unstructured) ([]string, error) {
	s, err := v.compile()
	if err != nil {
		return nil, err
	}
	defaulting.Default(o.Object, s.structural)
	meta, hasMeta, unknown, err := objectmeta.GetObjectMetaWithOptions(o.Object,
		objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	unknown = append(unknown, pruning.PruneWithOptions(o.Object, s.structural, true,
		structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(o.Object, s.structural)
	wrong, embedded := objectmeta.CoerceWithOptions(nil, o.Object, s.structural, false,
		objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if wrong != nil {
		return nil, wrong
	}
	if hasMeta {
		if err := objectmeta.SetObjectMeta(o.Object, meta); err != nil {
			return nil, err
		}
	}
	return append(unknown, embedded...), nil
}

// validate returns what the schema refuses of a new object. The rules in CEL are only asked about an object whose fields have the right
// types: on any other they would fail by themselves.
func (v *version) validate(ctx context.Context, o *unstructured.Unstructured) (field.ErrorList, error) {
	s, err := v.compile()
	if err != nil {
		return nil, err
	}
	errs := metavalidation.ValidateObjectMetaAccessor(o, v.namespaced, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResource(nil, o.Object, s.types)...)
	errs = append(errs, v.scaled(o)...)
	errs = append(errs, objectmeta.Validate(nil, o.Object, s.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, o.Object)...)
	if slices.ContainsFunc(errs, keepsFromRules) {
		return append(errs, field.Invalid(nil, nil, rulesUnchecked)), nil
	}
	if s.rules != nil {
		broken, _ := s.rules.Validate(ctx, nil, s.structural, o.Object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	return errs, nil
}

// rulesUnchecked is what API servers say where errors of types keep them from asking the rules.
const rulesUnchecked = "some validation rules were not checked because the object was invalid; correct the existing errors to complete " +
	"validation"

// keepsFromRules reports whether an error is of a kind after which API servers ask no rules in CEL.
func keepsFromRules(err *field.Error) bool {
	return slices.Contains([]field.ErrorType{
		field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid,
	}, err.Type)
}

// scaled refuses a number of replicas that the scale subresource could not show.
func (v *version) scaled(o *unstructured.Unstructured) field.ErrorList {
	if v.Subresources == nil || v.Subresources.Scale == nil {
		return nil
	}
	path := v.Subresources.Scale.SpecReplicasPath
	replicas, _, err := unstructured.NestedInt64(o.Object, strings.Split(strings.TrimPrefix(path, "."), ".")...)
	switch {
	case err != nil:
	case replicas < 0:
		err = errors.New("should be a non-negative integer")
	case replicas > math.MaxInt32:
		err = fmt.Errorf("should be less than or equal to %d", math.MaxInt32)
	}
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath(path), replicas, err.Error())}
	}
	return nil
}

// Shipped is what a CustomResourceDefinition that is shipped says of its versions.
type Shipped struct {
	Name, Group, Kind, Plural string
	// Versions are those that are served, the one that is stored first.
	Versions []string
	// Converts says that a webhook converts between them.
	Converts bool
}

// AllShipped returns the definitions of all kinds, in the order of their names.
func AllShipped() ([]Shipped, error) {
	all, err := definitions()
	if err != nil {
		return nil, err
	}
	var out []Shipped
	for kind, read := range all {
		d, err := read()
		if err != nil {
			return nil, err
		}
		s := Shipped{
			Name: d.Names.Plural + "." + d.Group, Group: d.Group, Kind: kind.Kind, Plural: d.Names.Plural,
			Converts: d.Conversion != nil && d.Conversion.Strategy == apiextensionsv1.WebhookConverter,
		}
		for _, v := range d.versions {
			switch {
			case v.Storage:
				s.Versions = append([]string{v.Name}, s.Versions...)
			case v.Served:
				s.Versions = append(s.Versions, v.Name)
			}
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Shipped) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
