package simulate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// claimInUse is the finalizer that keeps a claim while a Pod mounts it.
const claimInUse = "kubernetes.io/pvc-protection"

// terminate sets the deletion timestamp of an object, which is gone once its finalizers are removed and its grace period is over.
func (c *Cluster) terminate(who by, key Key, graceSeconds int64) {
	after := shallow(c.Get(key))
	end := metav1.NewTime(c.now.Truncate(time.Second).Add(time.Duration(graceSeconds) * time.Second))
	after.SetDeletionTimestamp(&end)
	after.SetDeletionGracePeriodSeconds(&graceSeconds)
	after.SetGeneration(after.GetGeneration() + 1)
	c.commit(who, key, after)
}

// Housekeep does one act of the garbage collector or of claim protection, and reports whether there was one to do.
func (c *Cluster) Housekeep() bool {
	for _, object := range c.all() {
		if object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), metav1.FinalizerOrphanDependents) {
			c.leaveBehind(object)
			return true
		}
		if c.isOrphan(object) && object.GetDeletionTimestamp() == nil {
			c.Delete("garbage collector", object)
			return true
		}
		if p, ok := object.(*corev1.Pod); ok && c.isStranded(p) {
			c.Delete("garbage collector of Pods", p)
			return true
		}
		if held, ok := object.(*corev1.PersistentVolumeClaim); ok && c.isFree(held) {
			Update(c, "claim protection", held, func(after *corev1.PersistentVolumeClaim) {
				after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == claimInUse })
			})
			return true
		}
	}
	return false
}

// all returns all objects, sorted by kind.
func (c *Cluster) all() []client.Object {
	var out []client.Object
	for _, stored := range c.shelves {
		out = append(out, stored.objects...)
	}
	return out
}

// Orphan deletes an object on behalf of an actor such that what it owns stays. The object is gone once the garbage collector has taken its
// name off all of that.
func (c *Cluster) Orphan(actor string, object client.Object) {
	Update(c, actor, object, func(after client.Object) {
		after.SetFinalizers(append(after.GetFinalizers(), metav1.FinalizerOrphanDependents))
	})
	c.Delete(actor, object)
}

// leaveBehind takes the name of an owner off one of its objects, or, where there is none left, lets the owner go.
func (c *Cluster) leaveBehind(owner client.Object) {
	isOwner := func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() }
	for _, object := range c.all() {
		if slices.ContainsFunc(object.GetOwnerReferences(), isOwner) {
			Update(c, "garbage collector", object, func(after client.Object) {
				after.SetOwnerReferences(slices.DeleteFunc(after.GetOwnerReferences(), isOwner))
			})
			return
		}
	}
	Update(c, "garbage collector", owner, func(after client.Object) {
		after.SetFinalizers(slices.DeleteFunc(after.GetFinalizers(), func(f string) bool { return f == metav1.FinalizerOrphanDependents }))
	})
}

// hasNode reports whether there is a node of that name.
func (c *Cluster) hasNode(name string) bool {
	return c.Get(Key{Kind: nodeKind(), Name: name}) != nil
}

func nodeKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Node") }

// isStranded reports whether the Pod ran on a node that is gone, in a cluster that has nodes.
func (c *Cluster) isStranded(p *corev1.Pod) bool {
	return c.shelves.of(nodeKind()) != nil && p.Spec.NodeName != "" && !c.hasNode(p.Spec.NodeName) && p.DeletionTimestamp == nil
}

// isOrphan reports whether the object has owners and all of them are gone.
func (c *Cluster) isOrphan(object client.Object) bool {
	owners := object.GetOwnerReferences()
	return len(owners) > 0 && !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return c.alive[o.UID] })
}

// isFree reports whether a claim is to be deleted and no Pod mounts it any more.
func (c *Cluster) isFree(held *corev1.PersistentVolumeClaim) bool {
	if held.DeletionTimestamp == nil || !slices.Contains(held.Finalizers, claimInUse) {
		return false
	}
	for _, object := range c.Of(corev1.SchemeGroupVersion.WithKind("Pod")) {
		p := object.(*corev1.Pod)
		if p.Namespace != held.Namespace || isFinished(p) {
			continue
		}
		for _, volume := range p.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == held.Name {
				return false
			}
		}
	}
	return true
}
