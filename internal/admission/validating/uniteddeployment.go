package validating

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/placement"
)

// UnitedDeployment returns the handler that validates of UnitedDeployments what their schema can't: what the numbers of the subsets add up
// to, the templates, by the rules of the workloads that are made of them, and patches.
func UnitedDeployment(o Options) admission.Handler {
	return kind[v1beta1.UnitedDeployment, *v1beta1.UnitedDeployment]{
		hub:     v1beta1.GroupVersion,
		subject: func(set *v1beta1.UnitedDeployment) any { return set.Spec },
		validate: func(ctx context.Context, w write[v1beta1.UnitedDeployment]) (findings, error) {
			return unitedChange{o, w}.validate(ctx)
		},
	}.handler()
}

// unitedChange is a UnitedDeployment to be written.
type unitedChange struct {
	Options
	write[v1beta1.UnitedDeployment]
}

func (c unitedChange) validate(ctx context.Context) (findings, error) {
	found := rules[v1beta1.UnitedDeployment](unitedRules).ratcheted(c.write)
	c.elsewhere(&found)
	if len(found.errors) > 0 {
		return found, nil
	}
	template, err := c.template(ctx)
	if err != nil {
		return findings{}, err
	}
	found.join(template)
	if len(found.errors) == 0 {
		c.subsets(ctx, &found)
	}
	if len(found.errors) == 0 {
		c.spread(&found)
	}
	return found, nil
}

// unitedRules checks what an object says by itself.
func unitedRules(found *findings, set *v1beta1.UnitedDeployment) {
	path := field.NewPath("spec")
	found.selector(path.Child("selector"), set.Spec.Selector)
	if given := templateOf(set); len(found.errors) == 0 && given != nil {
		at := path.Child("template", given.field)
		found.selects(set.Spec.Selector, at.Child("metadata", "labels"), given.labels)
		found.selects(set.Spec.Selector, at.Child("spec", "template", "metadata", "labels"), given.pods.Labels)
	}
	if native := set.Spec.Template.StatefulSetTemplate; native != nil {
		at := path.Child("template", "statefulSetTemplate", "spec")
		if native.Spec.Replicas != nil {
			found.forbidden(at.Child("replicas"), "may not be set: the number of Pods comes from the UnitedDeployment")
		}
		if rolling := native.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
			found.forbidden(at.Child("updateStrategy", "rollingUpdate", "partition"),
				"may not be set: use updateStrategy.manualUpdate.partitions of the UnitedDeployment")
		}
	}
	found.shares(path.Child("topology", "subsets"), set)
	found.waves(path.Child("updateStrategy", "waves"), set)
}

// waves checks that waves name subsets, and none of them twice.
func (f *findings) waves(path *field.Path, set *v1beta1.UnitedDeployment) {
	known, waveOf := map[string]bool{}, map[string]string{}
	for i := range set.Spec.Topology.Subsets {
		known[set.Spec.Topology.Subsets[i].Name] = true
	}
	for i, w := range set.Spec.UpdateStrategy.Waves {
		for j, name := range w.Subsets {
			at := path.Index(i).Child("subsets").Index(j)
			other, taken := waveOf[name]
			switch {
			case !known[name]:
				f.invalid(at, name, "there is no subset of this name in topology.subsets: add it there, or remove it here")
			case taken:
				f.invalid(at, name, "the subset is in wave %s, too: leave it in one of them", other)
			default:
				waveOf[name] = w.Name
			}
		}
	}
}

// selects checks that the selector of a UnitedDeployment matches the labels of its template.
func (f *findings) selects(selector *metav1.LabelSelector, at *field.Path, given map[string]string) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err == nil && !parsed.Matches(labels.Set(given)) {
		f.invalid(at, given, "selector %q does not match: add its labels", parsed)
	}
}

// unlimited is what a subset without an upper limit counts for in a sum.
const unlimited = 1000000

// shares checks what the numbers of the subsets add up to.
func (f *findings) shares(path *field.Path, set *v1beta1.UnitedDeployment) {
	total := replicasOf(set.Spec.Replicas)
	var specified, low, high int64
	isSpecified := 0
	for i := range set.Spec.Topology.Subsets {
		s := &set.Spec.Topology.Subsets[i]
		at := path.Index(i)
		if s.Replicas != nil {
			isSpecified++
		}
		least, most := f.number(at.Child("minReplicas"), s.MinReplicas, total), int64(unlimited)
		if s.MaxReplicas != nil {
			most = f.number(at.Child("maxReplicas"), s.MaxReplicas, total)
		}
		specified += f.number(at.Child("replicas"), s.Replicas, total)
		low, high = low+least, high+most
		if least > most {
			f.invalid(at.Child("minReplicas"), s.MinReplicas.String(), "is more than maxReplicas %s", s.MaxReplicas)
		}
	}
	n := len(set.Spec.Topology.Subsets)
	switch {
	case specified > int64(total):
		f.invalid(path, specified, "the subsets specify %d Pods, which is more than replicas %d", specified, total)
	case n > 0 && isSpecified == n && specified < int64(total):
		f.invalid(path, specified,
			"all subsets specify their replicas, %d together, but replicas is %d: leave it out in one of them", specified, total)
	case low > high:
		f.invalid(path, low, "minReplicas of all subsets together is more than their maxReplicas, %d", high)
	}
}

// number reads a number or a percentage; 0 where none is given.
func (f *findings) number(at *field.Path, value *intstr.IntOrString, total int32) int64 {
	if value == nil {
		return 0
	}
	n, err := placement.Number(*value, total)
	if err != nil {
		f.invalid(at, value.String(), "%v", err)
	}
	return int64(n)
}

// subsets checks patches, and node selectors and tolerations, where they are new. Those of all subsets are judged in
// one Pod template, as its terms; each patch is, in the template that it makes.
func (c unitedChange) subsets(ctx context.Context, found *findings) {
	given, path := templateOf(c.new), field.NewPath("spec", "topology", "subsets")
	if given == nil {
		return
	}
	all := &corev1.NodeSelector{}
	probe := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "any", Image: "any"}}}}
	var terms, tolerations []int // which subset each belongs to
	for i := range c.new.Spec.Topology.Subsets {
		s := &c.new.Spec.Topology.Subsets[i]
		was := c.before(s.Name)
		template, err := placement.Template(given.pods, s)
		switch {
		case err != nil:
			found.invalid(path.Index(i).Child("patch"), string(s.Patch.Raw), "%v", err)
			continue
		case placement.HasPatch(s) && (was == nil || string(was.Patch.Raw) != string(s.Patch.Raw)):
			c.judgePatched(ctx, found, path.Index(i).Child("patch"), template)
		}
		if was == nil {
			if len(s.NodeSelectorTerm.MatchExpressions)+len(s.NodeSelectorTerm.MatchFields) > 0 {
				all.NodeSelectorTerms, terms = append(all.NodeSelectorTerms, s.NodeSelectorTerm), append(terms, i)
			}
			for range s.Tolerations {
				tolerations = append(tolerations, i)
			}
			probe.Spec.Tolerations = append(probe.Spec.Tolerations, s.Tolerations...)
		}
	}
	if len(terms) > 0 {
		probe.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: all}}
	}
	if len(terms)+len(tolerations) > 0 && c.Templates != nil {
		const termsAt = "subsets.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
		verdict := judge(ctx, c.Templates, c.namespace, asFields(probe), field.NewPath("subsets"))
		for _, err := range verdict.Errors {
			err.Field = atSubset(path, err.Field, termsAt, "nodeSelectorTerm", terms)
			err.Field = atSubset(path, err.Field, "subsets.spec.tolerations", "tolerations", tolerations)
		}
		found.join(verdict.findings())
	}
}

// atSubset names an item of a list that was made of those of all subsets by where the user has written it.
func atSubset(path *field.Path, text, list, name string, subsets []int) string {
	rest, ok := strings.CutPrefix(text, list+"[")
	if !ok {
		return text
	}
	number, rest, _ := strings.Cut(rest, "]")
	at, ok := parseIndex(number)
	if !ok || at >= len(subsets) {
		return text
	}
	return path.Index(subsets[at]).Child(name).String() + rest
}

// before returns the subset of a name as it was; nil if it is new.
func (c unitedChange) before(name string) *v1beta1.Subset {
	if c.old == nil {
		return nil
	}
	for i := range c.old.Spec.Topology.Subsets {
		if s := &c.old.Spec.Topology.Subsets[i]; s.Name == name {
			return s
		}
	}
	return nil
}

// judgePatched has the API server judge a template with the patch of a subset.
func (c unitedChange) judgePatched(ctx context.Context, found *findings, at *field.Path, template *corev1.PodTemplateSpec) {
	if c.Templates == nil {
		return
	}
	verdict := judge(ctx, c.Templates, c.namespace, withClaims(asFields(*template), templateOf(c.new).claims), at)
	if len(verdict.Errors) > 0 {
		found.add(verdict.Errors) // what it warns of in the template itself, it has warned of
	}
}

// asFields returns a template as JSON.
func asFields(template corev1.PodTemplateSpec) map[string]any {
	fields, err := toFields(&template)
	if err != nil {
		panic(fmt.Sprintf("encoding a template that was decoded: %v", err))
	}
	return fields
}

// spread warns of a spread over zones that Pods of a subset can't reach, as their subset holds them in one.
func (c unitedChange) spread(found *findings) {
	given := templateOf(c.new)
	if given == nil || c.old != nil && equality.Semantic.DeepEqual(c.old.Spec, c.new.Spec) {
		return
	}
	for _, constraint := range given.pods.Spec.TopologySpreadConstraints {
		if constraint.MinDomains == nil || *constraint.MinDomains <= 1 {
			continue
		}
		for i := range c.new.Spec.Topology.Subsets {
			s := &c.new.Spec.Topology.Subsets[i]
			for _, expression := range s.NodeSelectorTerm.MatchExpressions {
				if expression.Key == constraint.TopologyKey && expression.Operator == corev1.NodeSelectorOpIn {
					found.warn("topologySpreadConstraints ask for %d domains of %s, and subset %s selects nodes by it: "+
						"no more than maxSkew %d of its Pods are scheduled",
						*constraint.MinDomains, constraint.TopologyKey, s.Name, constraint.MaxSkew)
				}
			}
		}
	}
}

// given is the template that is set.
type givenTemplate struct {
	field  string
	labels map[string]string
	pods   *corev1.PodTemplateSpec
	claims []corev1.PersistentVolumeClaim
}

// templateOf returns the template that is set; nil where none is.
func templateOf(set *v1beta1.UnitedDeployment) *givenTemplate {
	if set == nil {
		return nil
	}
	switch t := &set.Spec.Template; {
	case t.StatefulSetTemplate != nil:
		spec := &t.StatefulSetTemplate.Spec
		return &givenTemplate{"statefulSetTemplate", t.StatefulSetTemplate.Labels, &spec.Template, spec.VolumeClaimTemplates}
	case t.AdvancedStatefulSetTemplate != nil:
		advanced := t.AdvancedStatefulSetTemplate
		return &givenTemplate{"advancedStatefulSetTemplate", advanced.Labels, &advanced.Spec.Template, advanced.Spec.VolumeClaimTemplates}
	case t.CloneSetTemplate != nil:
		spec := &t.CloneSetTemplate.Spec
		return &givenTemplate{"cloneSetTemplate", t.CloneSetTemplate.Labels, &spec.Template, spec.VolumeClaimTemplates}
	case t.DeploymentTemplate != nil:
		return &givenTemplate{"deploymentTemplate", t.DeploymentTemplate.Labels, &t.DeploymentTemplate.Spec.Template, nil}
	}
	return nil
}

// rawIn returns the fields below spec.template and the name of the template, with all that this build does not know.
func (c unitedChange) rawIn(path ...string) map[string]any {
	fields, _, _ := unstructured.NestedMap(c.raw, append([]string{"spec", "template", templateOf(c.new).field}, path...)...)
	return fields
}
