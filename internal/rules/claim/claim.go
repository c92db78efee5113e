// Package claim keeps the claims of Pods that have claims of their own: Pod and claims share an instance id, which is a label on each and
// the end of each one's name.
package claim

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// InstanceID returns the instance id of a workload's Pod: its label, or, where a user removed that, the end of its name. It is empty for a
// Pod that has none, and such a Pod has no claims.
func InstanceID(p *corev1.Pod, workload string) string {
	if id := p.Labels[keys.InstanceID]; id != "" {
		return id
	}
	if id, ok := strings.CutPrefix(p.Name, workload+"-"); ok && !strings.Contains(id, "-") {
		return id
	}
	return ""
}

// Of returns the claims with an instance id, but for those that are being deleted.
func Of(id string, claims []*corev1.PersistentVolumeClaim) []*corev1.PersistentVolumeClaim {
	var out []*corev1.PersistentVolumeClaim
	for _, c := range claims {
		if id != "" && c.Labels[keys.InstanceID] == id && c.DeletionTimestamp == nil {
			out = append(out, c)
		}
	}
	return out
}

// Reusable returns, sorted, the ids of claims that a new Pod can take over: no Pod object uses the id, not even one that is being deleted
// or has failed, and none of its claims is being deleted.
func Reusable(claims []*corev1.PersistentVolumeClaim, used sets.Set[string]) []string {
	free, leaving := sets.New[string](), sets.New[string]()
	for _, c := range claims {
		id := c.Labels[keys.InstanceID]
		switch {
		case id == "" || used.Has(id):
		case c.DeletionTimestamp != nil:
			leaving.Insert(id)
		default:
			free.Insert(id)
		}
	}
	return sets.List(free.Difference(leaving))
}

// Owner is the workload that claims are made for.
type Owner struct {
	Name, Namespace     string
	Reference           metav1.OwnerReference
	SelectorMatchLabels map[string]string
}

// Name returns the name of the claim of a template for the instance of a workload.
func Name(template, workload, id string) string {
	return template + "-" + workload + "-" + id
}

// ForPod returns the claims of the Pod with this instance id, one for each template.
func ForPod(owner Owner, id string, templates []corev1.PersistentVolumeClaim) []*corev1.PersistentVolumeClaim {
	claims := make([]*corev1.PersistentVolumeClaim, 0, len(templates))
	for i := range templates {
		c := New(owner, id, &templates[i])
		c.OwnerReferences = []metav1.OwnerReference{owner.Reference}
		c.Labels[keys.InstanceID] = id
		claims = append(claims, c)
	}
	return claims
}

// New returns the claim that a template makes for the Pod with this instance id or number. It has no owner yet.
func New(owner Owner, id string, template *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	c := template.DeepCopy()
	c.ObjectMeta = metav1.ObjectMeta{
		Name:        Name(c.Name, owner.Name, id),
		Namespace:   owner.Namespace,
		Labels:      maps.Clone(c.Labels),
		Annotations: c.Annotations,
	}
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	maps.Copy(c.Labels, owner.SelectorMatchLabels)
	c.Status = corev1.PersistentVolumeClaimStatus{}
	return c
}

// Mount changes the Pod such that each template's volume is the claim of this instance: a volume of that name is replaced, a missing one is
// added, in the order of the templates.
func Mount(p *corev1.Pod, workload, id string, templates []corev1.PersistentVolumeClaim) {
	for i := range templates {
		name := templates[i].Name
		volume := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: Name(name, workload, id)},
		}}
		at := slices.IndexFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		if at < 0 {
			p.Spec.Volumes = append(p.Spec.Volumes, volume)
		} else {
			p.Spec.Volumes[at] = volume
		}
	}
}

// Moves is what becomes of claims that no active Pod uses.
type Moves struct {
	// Delete are claims whose Pod is gone.
	Delete []*corev1.PersistentVolumeClaim
	// ToPod are claims that go along with a Pod that is on its way out, and belong to the workload still.
	ToPod []Pair
}

// Pair is a claim and the Pod that it goes along with.
type Pair struct {
	Claim *corev1.PersistentVolumeClaim
	Pod   *corev1.Pod
}

// Orphans sorts the claims that no active Pod uses, where claims are not reused.
func Orphans(claims []*corev1.PersistentVolumeClaim, active, leaving []*corev1.Pod, workload string) Moves {
	if len(claims) == 0 {
		return Moves{}
	}
	used := map[string]bool{}
	for _, p := range active {
		used[InstanceID(p, workload)] = true
	}
	byID := map[string]*corev1.Pod{}
	for _, p := range leaving {
		byID[InstanceID(p, workload)] = p
	}
	var moves Moves
	for _, c := range claims {
		id := c.Labels[keys.InstanceID]
		if c.DeletionTimestamp != nil || id == "" || used[id] {
			continue
		}
		p, leaving := byID[id]
		switch {
		case !leaving:
			moves.Delete = append(moves.Delete, c)
		case !belongsTo(c, p):
			moves.ToPod = append(moves.ToPod, Pair{Claim: c, Pod: p})
		}
	}
	return moves
}

// belongsTo reports whether the Pod, and no workload, owns the claim.
func belongsTo(c *corev1.PersistentVolumeClaim, p *corev1.Pod) bool {
	return metav1.GetControllerOfNoCopy(c) == nil &&
		slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == p.UID })
}
