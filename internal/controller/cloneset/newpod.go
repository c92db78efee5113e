package cloneset

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// instanceIDs hands out the ids of new Pods: first those whose claims wait for a Pod, then new ones.
type instanceIDs struct {
	reusable  []string
	generator *claim.Generator
}

func (i *instanceIDs) next() string {
	if len(i.reusable) > 0 {
		id := i.reusable[0]
		i.reusable = i.reusable[1:]
		return id
	}
	return i.generator.Next()
}

// newIDs depends on nothing but what was seen, so that a pass that is repeated because the answer to a create was lost asks for the same
// Pod again instead of one more.
func (v *Survey) newIDs() *instanceIDs {
	used := v.fleet.usedIDs.Clone()
	for _, p := range v.release {
		used.Insert(claim.InstanceID(p, v.Set.Name))
	}
	for _, name := range v.Taken {
		// Ids have no dash, and end the names of both Pods and claims.
		used.Insert(name[strings.LastIndexByte(name, '-')+1:])
	}
	ids := &instanceIDs{}
	if v.Set.Spec.ScaleStrategy.EnablePVCReuse {
		ids.reusable = claim.Reusable(v.Claims, used)
	}
	for _, c := range v.Claims {
		used.Insert(c.Labels[keys.InstanceID])
	}
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(v.Set.UID)) // a hash does not fail
	for _, id := range slices.Sorted(maps.Keys(used)) {
		_, _ = seed.Write([]byte(id))
	}
	ids.generator = claim.NewIDs(int64(seed.Sum64()), used)
	return ids
}

// newPod returns the writes that create a Pod at the revision: its missing claims, then the Pod.
func newPod(v *Survey, rev *appsv1.ControllerRevision, id string) (plan.Chain, error) {
	template, claimTemplates, err := v.templates(rev)
	if err != nil {
		return nil, err
	}
	var chain plan.Chain
	set := v.claimOwner()
	for _, c := range claim.ForPod(set, id, claimTemplates) {
		if !slices.ContainsFunc(v.Claims, func(have *corev1.PersistentVolumeClaim) bool { return have.Name == c.Name }) {
			chain = append(chain, plan.Action{Verb: plan.Create, Concern: plan.Scale, After: c, FailedEvent: eventFailedCreate})
		}
	}
	p := v.podOf(template, rev, id)
	claim.Mount(p, set.Name, id, claimTemplates)
	return append(chain, plan.Action{
		Verb: plan.Create, Concern: plan.Scale, After: p,
		What:  "at revision " + rev.Name,
		Event: eventSuccessfulCreate, EventMessage: "succeed to create pod " + p.Name, FailedEvent: eventFailedCreate,
	}), nil
}

// templates returns the Pod template and the claim templates of a revision. Those of the update revision are in the spec; those of an older
// one are stored with it, but for the claim templates of revisions that other software wrote, for which the present ones stand in.
func (v *Survey) templates(rev *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, []corev1.PersistentVolumeClaim, error) {
	if rev.Name == v.history.Update.Name {
		return &v.Set.Spec.Template, v.Set.Spec.VolumeClaimTemplates, nil
	}
	template, err := v.history.Template(rev, &v.Set.Spec.Template)
	if err != nil {
		return nil, nil, err
	}
	encoded, ok := rev.Annotations[keys.RevisionClaimTemplates]
	if !ok {
		return template, v.Set.Spec.VolumeClaimTemplates, nil
	}
	claims, err := claim.DecodeTemplates(encoded)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the claim templates of revision %s: %w", rev.Name, err)
	}
	return template, claims, nil
}

func (v *Survey) claimOwner() claim.Owner {
	return claim.Owner{
		Name: v.Set.Name, Namespace: v.Set.Namespace, Reference: ownerReference(v.Set),
		SelectorMatchLabels: v.Set.Spec.Selector.MatchLabels,
	}
}

func (v *Survey) podOf(template *corev1.PodTemplateSpec, rev *appsv1.ControllerRevision, id string) *corev1.Pod {
	p := pod.New(template, v.Set, kind())
	p.Name = v.Set.Name + "-" + id
	p.Labels[keys.InstanceID] = id
	v.workload().Start(p, rev)
	return p
}
