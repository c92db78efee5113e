package validating

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/expression"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// sidecarContainers checks what is said of containers beyond what every container says.
func sidecarContainers(spec *v1beta1.SidecarSetSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for _, list := range []struct {
		name  string
		items []v1beta1.SidecarContainer
	}{{"containers", spec.Containers}, {"initContainers", spec.InitContainers}} {
		for i := range list.items {
			at, item := path.Child(list.name).Index(i), &list.items[i]
			errs = append(errs, hotUpgrade(item, at)...)
			errs = append(errs, transfers(item, at.Child("transferEnv"))...)
			errs = append(errs, resourcesPolicy(item, at)...)
			if list.name == "initContainers" {
				errs = append(errs, initOnly(item, at)...)
			}
			for _, name := range finalNames(item) {
				if names[name] {
					errs = append(errs, field.Duplicate(at.Child("name"), name))
				}
				names[name] = true
			}
		}
	}
	return errs
}

// finalNames returns the names that a sidecar has in Pods.
func finalNames(c *v1beta1.SidecarContainer) []string {
	if sidecar.IsHot(c) {
		first, second := sidecar.HotContainers(c.Name)
		return []string{first, second}
	}
	return []string{c.Name}
}

// hotUpgrade checks a sidecar that is upgraded by its twin.
func hotUpgrade(c *v1beta1.SidecarContainer, path *field.Path) field.ErrorList {
	if !sidecar.IsHot(c) {
		return nil
	}
	var errs field.ErrorList
	if c.UpgradeStrategy.HotUpgradeEmptyImage == c.Image {
		errs = append(errs, field.Invalid(path.Child("upgradeStrategy", "hotUpgradeEmptyImage"), c.Image, "must differ from the image of the sidecar"))
	}
	for _, name := range finalNames(c) {
		for _, message := range validation.IsDNS1123Label(name) {
			errs = append(errs, field.Invalid(path.Child("name"), c.Name, fmt.Sprintf("HotUpgrade makes it %s: %s", name, message)))
		}
	}
	return errs
}

// initOnly checks what init containers can't do.
func initOnly(c *v1beta1.SidecarContainer, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if sidecar.IsHot(c) {
		errs = append(errs, field.Forbidden(path.Child("upgradeStrategy", "upgradeType"), "init containers can't be upgraded hot: use ColdUpgrade, or move it to containers"))
	}
	if c.ResourcesPolicy != nil && !sidecar.IsNative(c) {
		errs = append(errs, field.Forbidden(path.Child("resourcesPolicy"), "an init container needs restartPolicy Always for it"))
	}
	return errs
}

// nameField is where the name of a container may be read: a label or an annotation.
var nameField = regexp.MustCompile(`^metadata\.(labels|annotations)\['(.+)'\]$`)

func transfers(c *v1beta1.SidecarContainer, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range c.TransferEnv {
		from := c.TransferEnv[i].SourceContainerNameFrom
		if from == nil || from.FieldRef == nil {
			continue
		}
		at := path.Index(i).Child("sourceContainerNameFrom", "fieldRef")
		if from.FieldRef.APIVersion != "v1" {
			errs = append(errs, field.Invalid(at.Child("apiVersion"), from.FieldRef.APIVersion, "must be v1"))
		}
		parts := nameField.FindStringSubmatch(from.FieldRef.FieldPath)
		if parts == nil {
			errs = append(errs, field.Invalid(at.Child("fieldPath"), from.FieldRef.FieldPath, "must be metadata.labels['<key>'] or metadata.annotations['<key>']"))
			continue
		}
		for _, message := range validation.IsQualifiedName(strings.ToLower(parts[2])) {
			errs = append(errs, field.Invalid(at.Child("fieldPath"), from.FieldRef.FieldPath, message))
		}
	}
	return errs
}

func resourcesPolicy(c *v1beta1.SidecarContainer, path *field.Path) field.ErrorList {
	policy := c.ResourcesPolicy
	if policy == nil {
		return nil
	}
	var errs field.ErrorList
	if len(c.Resources.Limits)+len(c.Resources.Requests)+len(c.Resources.Claims) > 0 {
		errs = append(errs, field.Forbidden(path.Child("resources"), "can't be set together with resourcesPolicy"))
	}
	at := path.Child("resourcesPolicy")
	if _, err := regexp.Compile(policy.TargetContainersNameRegex); err != nil || policy.TargetContainersNameRegex == "" {
		errs = append(errs, field.Invalid(at.Child("targetContainersNameRegex"), policy.TargetContainersNameRegex, "must be a regular expression"))
	}
	return append(errs, expressions(&policy.ResourcesExpr, at.Child("resourcesExpr"))...)
}

// expressions checks that what resources are computed by can be read.
func expressions(all *v1beta1.ResourcesExpr, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(text string, variable expression.Variable, at *field.Path) {
		if text == "" {
			return
		}
		if err := expression.Check(text, variable); err != nil {
			errs = append(errs, field.Invalid(at.Child(string(variable)), text, err.Error()))
		}
	}
	if limits := all.Limits; limits != nil {
		check(limits.CPU, expression.CPU, path.Child("limits"))
		check(limits.Memory, expression.Memory, path.Child("limits"))
	}
	if requests := all.Requests; requests != nil {
		check(requests.CPU, expression.CPU, path.Child("requests"))
		check(requests.Memory, expression.Memory, path.Child("requests"))
	}
	return errs
}

// containersKept checks that containers are neither added nor upgraded in another way: Pods could not follow.
func (c sidecarSetChange) containersKept(path *field.Path) field.ErrorList {
	if c.old == nil {
		return nil
	}
	before := map[string]v1beta1.SidecarContainerUpgradeType{}
	for i := range c.old.Spec.Containers {
		before[c.old.Spec.Containers[i].Name] = c.old.Spec.Containers[i].UpgradeStrategy.UpgradeType
	}
	var errs field.ErrorList
	for i := range c.new.Spec.Containers {
		item := &c.new.Spec.Containers[i]
		way, known := before[item.Name]
		switch {
		case !known:
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), item.Name, fmt.Sprintf("container %v is not found: containers can't be added or renamed, make another SidecarSet for it", item.Name)))
		case way != item.UpgradeStrategy.UpgradeType:
			errs = append(errs, field.Invalid(path.Index(i).Child("upgradeStrategy", "upgradeType"), item.UpgradeStrategy.UpgradeType, "upgradeType is immutable"))
		}
	}
	return errs
}

// asTemplate asks the API server about containers and volumes: whether they would make a Pod.
func (c sidecarSetChange) asTemplate(ctx context.Context) Verdict {
	if c.Templates == nil {
		return Verdict{}
	}
	spec, _ := c.raw["spec"].(map[string]any)
	containers := plainContainers(spec["containers"])
	if len(containers) == 0 {
		containers = []any{map[string]any{"name": "of-the-pod", "image": "image"}} // init containers alone are no Pod
	}
	template := map[string]any{"spec": map[string]any{
		"containers": containers, "initContainers": plainContainers(spec["initContainers"]), "volumes": spec["volumes"],
	}}
	verdict := judge(ctx, c.Templates, c.Namespace, template, field.NewPath("template"))
	for _, err := range verdict.Errors {
		err.Field = strings.TrimPrefix(err.Field, "template.")
	}
	return verdict
}

// plainContainers returns containers without what a container of Kubernetes does not have.
func plainContainers(list any) []any {
	items, _ := list.([]any)
	out := make([]any, 0, len(items))
	for _, item := range items {
		fields, _ := item.(map[string]any)
		plain := maps.Clone(fields)
		for _, ours := range []string{"podInjectPolicy", "upgradeStrategy", "shareVolumePolicy", "shareVolumeDevicePolicy", "transferEnv", "resourcesPolicy"} {
			delete(plain, ours)
		}
		out = append(out, plain)
	}
	return out
}

func isJSONObject(text string) bool {
	var object map[string]any
	return json.Unmarshal([]byte(text), &object) == nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
