package validating

import (
	"cmp"
	"context"
	"encoding/json"
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
func sidecarContainers(found *findings, path *field.Path, spec *v1beta1.SidecarSetSpec) {
	names := map[string]bool{}
	eachSidecar(spec, func(list string, i int, item *v1beta1.SidecarContainer) {
		at := path.Child(list).Index(i)
		hotUpgrade(found, at, item)
		transfers(found, at.Child("transferEnv"), item)
		resourcesPolicy(found, at, item)
		if list == "initContainers" {
			initOnly(found, at, item)
		}
		for _, name := range finalNames(item) {
			if names[name] {
				found.add(field.ErrorList{field.Duplicate(at.Child("name"), name)})
			}
			names[name] = true
		}
	})
}

// eachSidecar calls do with each container, the name of its list and its place there.
func eachSidecar(spec *v1beta1.SidecarSetSpec, do func(list string, i int, item *v1beta1.SidecarContainer)) {
	for i := range spec.Containers {
		do("containers", i, &spec.Containers[i])
	}
	for i := range spec.InitContainers {
		do("initContainers", i, &spec.InitContainers[i])
	}
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
func hotUpgrade(found *findings, path *field.Path, c *v1beta1.SidecarContainer) {
	if !sidecar.IsHot(c) {
		return
	}
	if c.UpgradeStrategy.HotUpgradeEmptyImage == c.Image {
		found.invalid(path.Child("upgradeStrategy", "hotUpgradeEmptyImage"), c.Image, "must differ from the image of the sidecar")
	}
	for _, name := range finalNames(c) {
		for _, message := range validation.IsDNS1123Label(name) {
			found.invalid(path.Child("name"), c.Name, "HotUpgrade makes it %s: %s", name, message)
		}
	}
}

// initOnly checks what init containers can't do.
func initOnly(found *findings, path *field.Path, c *v1beta1.SidecarContainer) {
	if sidecar.IsHot(c) {
		found.forbidden(path.Child("upgradeStrategy", "upgradeType"),
			"init containers can't be upgraded hot: use ColdUpgrade, or move it to containers")
	}
	if c.ResourcesPolicy != nil && !sidecar.IsNative(c) {
		found.forbidden(path.Child("resourcesPolicy"), "an init container needs restartPolicy Always for it")
	}
}

// nameField is where the name of a container may be read: a label or an annotation.
var nameField = regexp.MustCompile(`^metadata\.(labels|annotations)\['(.+)'\]$`)

func transfers(found *findings, path *field.Path, c *v1beta1.SidecarContainer) {
	for i := range c.TransferEnv {
		from := c.TransferEnv[i].SourceContainerNameFrom
		if from == nil || from.FieldRef == nil {
			continue
		}
		at, ref := path.Index(i).Child("sourceContainerNameFrom", "fieldRef"), from.FieldRef
		if ref.APIVersion != "v1" {
			found.invalid(at.Child("apiVersion"), ref.APIVersion, "must be v1")
		}
		at = at.Child("fieldPath")
		if parts := nameField.FindStringSubmatch(ref.FieldPath); parts == nil {
			found.invalid(at, ref.FieldPath, "must be metadata.labels['<key>'] or metadata.annotations['<key>']")
		} else {
			found.messages(at, ref.FieldPath, validation.IsQualifiedName(strings.ToLower(parts[2])))
		}
	}
}

func resourcesPolicy(found *findings, path *field.Path, c *v1beta1.SidecarContainer) {
	policy := c.ResourcesPolicy
	if policy == nil {
		return
	}
	if len(c.Resources.Limits)+len(c.Resources.Requests)+len(c.Resources.Claims) > 0 {
		found.forbidden(path.Child("resources"), "can't be set together with resourcesPolicy")
	}
	path = path.Child("resourcesPolicy")
	if _, err := regexp.Compile(policy.TargetContainersNameRegex); err != nil || policy.TargetContainersNameRegex == "" {
		found.invalid(path.Child("targetContainersNameRegex"), policy.TargetContainersNameRegex, "must be a regular expression")
	}
	path = path.Child("resourcesExpr")
	check := func(text string, variable expression.Variable, at *field.Path) {
		if text == "" {
			return
		}
		if err := expression.Check(text, variable); err != nil {
			found.invalid(at.Child(string(variable)), text, "%v", err)
		}
	}
	if limits := policy.ResourcesExpr.Limits; limits != nil {
		check(limits.CPU, expression.CPU, path.Child("limits"))
		check(limits.Memory, expression.Memory, path.Child("limits"))
	}
	if requests := policy.ResourcesExpr.Requests; requests != nil {
		check(requests.CPU, expression.CPU, path.Child("requests"))
		check(requests.Memory, expression.Memory, path.Child("requests"))
	}
}

// containersKept checks that containers are neither added nor upgraded in another way: Pods could not follow. A SidecarSet that was stored
// without its defaults, such as one of a backup, upgrades them as the default says.
func (c sidecarSetChange) containersKept(found *findings, path *field.Path) {
	if c.old == nil {
		return
	}
	before := map[string]v1beta1.SidecarContainerUpgradeType{}
	for i := range c.old.Spec.Containers {
		item := &c.old.Spec.Containers[i]
		before[item.Name] = cmp.Or(item.UpgradeStrategy.UpgradeType, v1beta1.SidecarContainerColdUpgrade)
	}
	for i := range c.new.Spec.Containers {
		item := &c.new.Spec.Containers[i]
		way, known := before[item.Name]
		switch now := item.UpgradeStrategy.UpgradeType; {
		case !known:
			found.invalid(path.Index(i).Child("name"), item.Name,
				"container %v is not found: containers can't be added or renamed, make another SidecarSet for it", item.Name)
		case way != now:
			found.invalid(path.Index(i).Child("upgradeStrategy", "upgradeType"), now, "upgradeType is immutable")
		}
	}
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
		for _, ours := range []string{
			"podInjectPolicy", "upgradeStrategy", "shareVolumePolicy", "shareVolumeDevicePolicy", "transferEnv", "resourcesPolicy",
		} {
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
