package uniteddeployment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/placement"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// applied is what is noted on a workload of the last write.
type applied struct {
	// hash is that of the spec without its numbers of Pods, and of labels and annotations.
	hash string
	// generation is the one that the spec got by the write.
	generation int64
}

func appliedTo(object metav1.Object) applied {
	hash, number, _ := strings.Cut(object.GetAnnotations()[keys.SubsetApplied], " ")
	generation, _ := strconv.ParseInt(number, 10, 64) // what can't be read is older than any
	return applied{hash, generation}
}

func (a applied) String() string { return fmt.Sprintf("%s %d", a.hash, a.generation) }

// isEdited reports whether somebody else has changed the spec of a workload since it was last written.
func (m *member) isEdited() bool { return m.Object.GetGeneration() > appliedTo(m.Object).generation }

// workload returns the workload of a subset as it is wanted, without a name, and with the hash of what was made of the template.
func (v *State) workload(one *subset) (plan.Object, string, error) {
	template, revisionName := &v.Set.Spec.Template, v.history.Update.Name
	if one.keeps.template != nil {
		template, revisionName = one.keeps.template, one.keeps.revision
	}
	out := v.kind.make(template)
	f := v.kind.fields(out)
	pods, err := placement.Template(f.pods, one.Subset)
	if err != nil {
		return nil, "", err
	}
	*f.pods = *pods
	selector := v.Set.Spec.Selector.DeepCopy()
	if selector.MatchLabels == nil {
		selector.MatchLabels = map[string]string{}
	}
	selector.MatchLabels[keys.SubsetName] = one.Name
	*f.selector = selector
	identity := maps.Clone(selector.MatchLabels)
	identity[keys.SubsetRevision] = revisionName
	if one.elsewhere != nil {
		identity = v.identity(one).Labelled(identity)
	}
	pods.Labels = with(pods.Labels, identity)
	f.pods.Labels = pods.Labels
	out.SetLabels(with(out.GetLabels(), identity))
	out.SetAnnotations(with(out.GetAnnotations(), map[string]string{keys.SubsetPatch: patchOf(one)}))
	out.SetNamespace(v.Set.Namespace)
	if one.elsewhere == nil {
		out.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(v.Set, kind())})
	}
	*f.replicas = nil
	encoded, err := json.Marshal(out)
	if err != nil {
		return nil, "", fmt.Errorf("encoding the workload of subset %s: %w", one.Name, err)
	}
	v.setNumbers(f, one)
	hash := revision.Hash(encoded, 0)
	if n, set := v.unavailable(one); set {
		hash += fmt.Sprintf("-%d", n) // which no template says, so that it is taken back with the whole spec
	}
	if v.budget > 0 {
		hash += "-shared" // so that the template's own maxUnavailable comes back when there is no budget any more
	}
	return out, hash, nil
}

func with(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}

func patchOf(one *subset) string {
	if !placement.HasPatch(one.Subset) {
		return ""
	}
	var compact bytes.Buffer
	if json.Compact(&compact, one.Patch.Raw) != nil {
		return string(one.Patch.Raw)
	}
	return compact.String()
}

// setNumbers sets the numbers of Pods in the spec of a workload.
func (v *State) setNumbers(f fields, one *subset) {
	replicas := one.replicas
	*f.replicas = &replicas
	if f.setPartition != nil {
		f.setPartition(one.partition)
	}
	if f.maxUnavailable == nil {
		return
	}
	if unavailable, set := v.unavailable(one); set {
		value := intstr.FromInt32(unavailable)
		*f.maxUnavailable() = &value
	}
	if one.limit != nil {
		*f.maxUnavailable() = one.limit.value
	}
}

// unavailable returns how many Pods may be unavailable in a rollout of a subset whose Pods wait for nodes: these do not hold it up.
func (v *State) unavailable(one *subset) (int32, bool) {
	if !v.reserving || one.reserved == 0 || one.now == nil {
		return 0, false
	}
	healthy := int32(0)
	for _, p := range one.now.Pods {
		if pod.IsActive(p) && pod.IsReady(p) && p.Labels[keys.SubsetRevision] != v.history.Update.Name && v.isReserved(one, p) {
			healthy++
		}
	}
	return max(one.now.specified-one.now.ready, 0) + healthy, true
}

// hasNumbers reports whether a workload has the numbers of Pods that are wanted. A partition that is not said is 0.
func (v *State) hasNumbers(one *subset) bool {
	f := v.kind.fields(one.now.Object)
	return valueOr(*f.replicas, 1) == one.replicas && (f.partition == nil || valueOr(f.partition(), 0) == one.partition) &&
		(f.maxUnavailable == nil || one.limit == nil || equality.Semantic.DeepEqual(*f.maxUnavailable(), one.limit.value))
}

// whyNumbers is why a workload is written of which only numbers of Pods differ.
const whyNumbers = "the number of Pods is another one"

// update returns the workload of a subset as it is to be; false where it is that already. wanted is it as it would be created.
func (v *State) update(one *subset, wanted plan.Object, hash string) (plan.Object, string, bool) {
	now := one.now.Object
	note := appliedTo(now)
	if one.keeps.spec {
		hash = note.hash
	}
	isSame := note.hash == hash
	isRepair := isSame && !one.keeps.spec && one.now.isEdited() && !contains(now, wanted)
	if isSame && !isRepair && v.hasNumbers(one) {
		return nil, "", false
	}
	out := now.DeepCopyObject().(plan.Object)
	why := whyNumbers
	if !isSame || isRepair {
		why = "what it is made of has changed"
		if isRepair {
			why = "somebody else has changed it"
		}
		copySpec(out, wanted)
		was := v.templateOf(one.now)
		out.SetLabels(with(without(now.GetLabels(), was.GetLabels()), wanted.GetLabels()))
		out.SetAnnotations(with(without(now.GetAnnotations(), was.GetAnnotations()), wanted.GetAnnotations()))
	} else {
		v.setNumbers(v.kind.fields(out), one)
	}
	note = applied{hash, now.GetGeneration()}
	if !contains(now, wanted) || one.keeps.spec {
		note.generation++
	}
	out.SetAnnotations(with(out.GetAnnotations(), v.notes(one, note)))
	return out, why, true
}

// templateOf returns what a workload was made from, as far as it is still stored: its labels and annotations that are not wanted any more
// have to go, and those of others have to stay.
func (v *State) templateOf(m *member) plan.Object {
	name := m.Object.GetLabels()[keys.SubsetRevision]
	for _, rev := range v.Revisions {
		if rev.Name != name {
			continue
		}
		if template, err := revision.SubsetTemplate(rev); err == nil {
			if was := m.kind.make(template); was != nil {
				return was
			}
		}
	}
	return v.kind.make(&v.Set.Spec.Template)
}

func without(all, some map[string]string) map[string]string {
	out := maps.Clone(all)
	for key := range some {
		delete(out, key)
	}
	return out
}

func copySpec(to, from plan.Object) {
	reflect.ValueOf(to).Elem().FieldByName("Spec").Set(reflect.ValueOf(from).Elem().FieldByName("Spec"))
}

func sameType(k workloadKind, object plan.Object) bool {
	return fmt.Sprintf("%T", k.list()) == fmt.Sprintf("%TList", object)
}

// contains reports whether a workload has all that is wanted in its spec and its labels. What it has besides, such as defaults, does not
// matter.
func contains(now, wanted plan.Object) bool {
	for key, value := range wanted.GetLabels() {
		if now.GetLabels()[key] != value {
			return false
		}
	}
	return within(specOf(wanted), specOf(now))
}

func specOf(object plan.Object) any {
	encoded, err := json.Marshal(reflect.ValueOf(object).Elem().FieldByName("Spec").Interface())
	var out any
	if err != nil || json.Unmarshal(encoded, &out) != nil {
		panic("encoding a spec that was decoded") // these types always can
	}
	return out
}

// within reports whether decoded JSON says all that a part of it says. Nothing, zero and empty mean the same as a field that is left out.
func within(part, all any) bool {
	switch part := part.(type) {
	case map[string]any:
		other, _ := all.(map[string]any)
		for key, value := range part {
			if !within(value, other[key]) {
				return false
			}
		}
		return true
	case []any:
		other, _ := all.([]any)
		if len(part) != len(other) {
			return false
		}
		for i := range part {
			if !within(part[i], other[i]) {
				return false
			}
		}
		return true
	}
	return part == all || all == nil && (part == nil || reflect.ValueOf(part).IsZero())
}

// longestName leaves room for a dash and a hash in the label values that StatefulSets and CloneSets make of their names.
const longestName = 52

// nameFor returns the name of the workload of a subset: that of the UnitedDeployment, that of the subset, and a hash, as far as there is
// room. It depends on nothing else but what is taken, so that a creation whose answer was lost is repeated under the same name.
//
// Wire: it is the same in every version, so that no subset gets a second workload.
func (v *State) nameFor(one *subset) string {
	if one.elsewhere != nil {
		return v.identity(one).WorkloadName()
	}
	prefix := strings.ReplaceAll(v.Set.Name, ".", "-")
	long := prefix + "-" + one.Name
	if room := longestName - len("-12345"); len(long) <= room {
		prefix = long
	} else if len(prefix) > room {
		prefix = strings.TrimRight(prefix[:room], "-")
	}
	used := map[string]bool{}
	for _, name := range v.Taken {
		used[name] = true
	}
	for _, w := range v.Workloads {
		used[w.Object.GetName()] = true // also of one that is being deleted
	}
	for try := uint64(0); ; try++ {
		name := prefix + "-" + pod.Suffix(try, string(v.Set.UID), one.Name, v.kind.gvk.String())
		if !used[name] && len(validation.IsDNS1123Label(name)) == 0 {
			return name
		}
	}
}

// numberOf returns the number at the end of the name of a Pod of a StatefulSet.
func numberOf(name string) (int32, bool) {
	number, err := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 32)
	return int32(number), err == nil && number >= 0
}

func byName(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }

// sortedByName sorts workloads.
func sortedByName(members []*member) []*member {
	return slices.SortedFunc(slices.Values(members), func(a, b *member) int {
		return strings.Compare(a.Object.GetName(), b.Object.GetName())
	})
}
