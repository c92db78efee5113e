package simulate

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Subresources that can be patched.
const (
	statusPart = "status"
	resizePart = "resize"
	// ephemeralPart is the ephemeral containers of a Pod.
	ephemeralPart = "ephemeralcontainers"
)

func (c *Cluster) patch(who by, object client.Object, p patch) (client.Object, error) {
	key := c.KeyOf(object)
	current := c.Get(key)
	if current == nil {
		return nil, apierrors.NewNotFound(resourceOf(key), key.Name)
	}
	wanted, err := applied(current, p)
	if err != nil {
		return nil, unprocessable(key, err.Error())
	}
	_, isPod := current.(*corev1.Pod)
	if p.subresource == statusPart && !isPod {
		// As of 1.36, of a custom resource's metadata nothing but the version counts here.
		wanted.SetUID(current.GetUID())
	}
	if wanted.GetUID() != current.GetUID() || wanted.GetResourceVersion() != current.GetResourceVersion() {
		return nil, apierrors.NewConflict(resourceOf(key), key.Name, fmt.Errorf("the object has been modified"))
	}
	after := keepServerFields(current, wanted)
	switch p.subresource {
	case "":
		if err := forbidden(key, current, after); err != nil {
			return nil, err
		}
		copyField(after, current, "Status")
	case statusPart:
		after = withStatusOf(current, after)
	case resizePart:
		after = withResourcesOf(current, after)
	case ephemeralPart:
		if after, err = withEphemeralOf(key, current, after); err != nil {
			return nil, err
		}
	default:
		return nil, apierrors.NewNotFound(resourceOf(key), key.Name+"/"+p.subresource)
	}
	if before, is := current.(*corev1.Pod); is && c.Admit != nil && p.subresource != statusPart {
		if err := c.Admit(before, after.(*corev1.Pod)); err != nil {
			return nil, err
		}
	}
	return c.store(who, key, after), nil
}

// keepServerFields takes over from the stored object what only the server writes.
func keepServerFields(current, wanted client.Object) client.Object {
	wanted.SetCreationTimestamp(current.GetCreationTimestamp())
	wanted.SetDeletionTimestamp(current.GetDeletionTimestamp())
	wanted.SetDeletionGracePeriodSeconds(current.GetDeletionGracePeriodSeconds())
	wanted.SetGeneration(current.GetGeneration())
	return wanted
}

// withStatusOf returns what a write to the status subresource stores: the status, and of Pods labels, annotations and finalizers too, but
// neither spec nor owners.
func withStatusOf(current, wanted client.Object) client.Object {
	after := shallow(current)
	copyField(after, wanted, "Status")
	if _, isPod := current.(*corev1.Pod); isPod {
		after.SetLabels(wanted.GetLabels())
		after.SetAnnotations(wanted.GetAnnotations())
		after.SetFinalizers(wanted.GetFinalizers())
	}
	return after
}

// withResourcesOf returns what a write to the resize subresource of a Pod stores.
func withResourcesOf(current, wanted client.Object) client.Object {
	after := copyOf(current)
	p, isPod := after.(*corev1.Pod)
	w, _ := wanted.(*corev1.Pod)
	if !isPod || len(p.Spec.Containers) != len(w.Spec.Containers) {
		return after
	}
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Resources = w.Spec.Containers[i].Resources
	}
	return after
}

// withEphemeralOf returns what a write to the ephemeralcontainers subresource of a Pod stores: containers may be added, and nothing else.
func withEphemeralOf(key Key, current, wanted client.Object) (client.Object, error) {
	after := copyOf(current)
	p, isPod := after.(*corev1.Pod)
	if !isPod {
		return nil, apierrors.NewNotFound(resourceOf(key), key.Name+"/"+ephemeralPart)
	}
	containers := wanted.(*corev1.Pod).Spec.EphemeralContainers
	for i := range p.Spec.EphemeralContainers {
		if i >= len(containers) || !equal(&containers[i], &p.Spec.EphemeralContainers[i]) {
			return nil, unprocessable(key, "existing ephemeral containers may not be changed or removed")
		}
	}
	names := map[string]bool{}
	for i := range p.Spec.Containers {
		names[p.Spec.Containers[i].Name] = true
	}
	for i := range containers {
		if names[containers[i].Name] {
			return nil, unprocessable(key, "duplicate container "+containers[i].Name)
		}
		names[containers[i].Name] = true
	}
	p.Spec.EphemeralContainers = containers
	return after, nil
}

func unprocessable(key Key, why string) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", resourceOf(key), key.Name, why, 0, true)
}

// forbidden returns an error when the change is one that the API server does not take: of a Pod's spec only images may change, and before
// it may be scheduled where it may run.
func forbidden(key Key, current, wanted client.Object) error {
	before, isPod := current.(*corev1.Pod)
	if !isPod {
		return nil
	}
	after := wanted.(*corev1.Pod).Spec
	after.Containers, after.InitContainers = slices.Clone(after.Containers), slices.Clone(after.InitContainers)
	for _, pair := range [][2][]corev1.Container{
		{after.Containers, before.Spec.Containers}, {after.InitContainers, before.Spec.InitContainers},
	} {
		for i := range min(len(pair[0]), len(pair[1])) {
			pair[0][i].Image = pair[1][i].Image
		}
	}
	if gates := before.Spec.SchedulingGates; len(gates) > 0 && len(after.SchedulingGates) <= len(gates) {
		after.SchedulingGates, after.Affinity, after.Tolerations = gates, before.Spec.Affinity, before.Spec.Tolerations
	}
	if equal(&after, &before.Spec) {
		return nil
	}
	return unprocessable(key, "pod updates may not change fields other than images")
}

// copyField has an object share a field with another one.
func copyField(to, from client.Object, name string) {
	if field := reflect.ValueOf(to).Elem().FieldByName(name); field.IsValid() {
		field.Set(reflect.ValueOf(from).Elem().FieldByName(name))
	}
}

// delete marks an object as to be deleted, or removes it where nothing keeps it, and returns the revision of that.
func (c *Cluster) delete(who by, object client.Object, conditions metav1.Preconditions) (int64, error) {
	key := c.KeyOf(object)
	current := c.Get(key)
	if current == nil {
		return 0, apierrors.NewNotFound(resourceOf(key), key.Name)
	}
	if (conditions.UID != nil && *conditions.UID != current.GetUID()) ||
		(conditions.ResourceVersion != nil && *conditions.ResourceVersion != current.GetResourceVersion()) {
		return 0, apierrors.NewConflict(resourceOf(key), key.Name, fmt.Errorf("the precondition does not hold"))
	}
	if current.GetDeletionTimestamp() != nil {
		return c.revision, nil
	}
	if p, is := current.(*corev1.Pod); is && c.Admit != nil {
		if err := c.Admit(p, nil); err != nil {
			return 0, err
		}
	}
	var grace int64
	if p, isPod := current.(*corev1.Pod); isPod && p.Spec.NodeName != "" && !isFinished(p) {
		grace = 30
		if p.Spec.TerminationGracePeriodSeconds != nil {
			grace = *p.Spec.TerminationGracePeriodSeconds
		}
	}
	c.terminate(who, key, grace)
	return c.revision, nil
}

// Delete deletes an object on behalf of an actor. Deleting what is not there is no mistake, nor what admission refuses.
func (c *Cluster) Delete(actor string, object client.Object) {
	_, err := c.delete(by{actor: actor}, object, metav1.Preconditions{})
	if err != nil && !apierrors.IsNotFound(err) && c.Admit == nil {
		panic("simulate: deleting without conditions: " + err.Error())
	}
}

func isFinished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
