package observe

import (
	"crypto/sha256"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// heldParts is how many parts of Pods are held of late; as many again may be held of those before. A part takes a kilobyte or two.
const heldParts = 1 << 11

// kindOfPart keeps parts of different kinds apart whose encodings are the same.
type kindOfPart byte

const (
	partOfMeta kindOfPart = iota
	partOfAnnotations
	partOfSpec
	partOfContainer
	partOfStatus
	partOfVolume
)

// encodes is a type of Kubernetes' API.
type encodes interface {
	Size() int
	MarshalToSizedBuffer(into []byte) (int, error)
}

// share has a Pod that is held whole share with the other Pods of its template what they have in common. That is most of a Pod: its
// resources, environment, probes and tolerations, each of which is decoded for each Pod anew. The name of the volume for the token of the
// service account differs from Pod to Pod, so that mounts are the Pod's own.
func (i *interner) share(p *corev1.Pod) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	meta := metav1.ObjectMeta{
		Namespace: p.Namespace, GenerateName: p.GenerateName, OwnerReferences: p.OwnerReferences, Finalizers: p.Finalizers,
	}
	if err := sharePart(i, partOfMeta, &meta); err != nil {
		return err
	}
	p.Namespace, p.GenerateName, p.OwnerReferences, p.Finalizers = meta.Namespace, meta.GenerateName, meta.OwnerReferences, meta.Finalizers
	annotations := metav1.ObjectMeta{Annotations: p.Annotations}
	if err := sharePart(i, partOfAnnotations, &annotations); err != nil {
		return err
	}
	p.Labels, p.Annotations = i.textsIn(p.Labels), annotations.Annotations
	if err := i.shareSpec(&p.Spec); err != nil {
		return err
	}
	p.Status.Conditions = slices.Clone(p.Status.Conditions) // as it was decoded, it may have room for twice as many
	for at := range p.Status.Conditions {
		c := &p.Status.Conditions[at]
		c.Type, c.Status = corev1.PodConditionType(i.text(string(c.Type))), corev1.ConditionStatus(i.text(string(c.Status)))
		c.Reason = i.text(c.Reason)
	}
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for at := range statuses {
			if err := i.shareStatus(&statuses[at]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i *interner) shareSpec(s *corev1.PodSpec) error {
	for _, containers := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for at := range containers {
			if err := i.shareContainer(&containers[at]); err != nil {
				return err
			}
		}
	}
	for at := range s.Volumes {
		v := &s.Volumes[at]
		name := v.Name
		v.Name = ""
		if err := sharePart(i, partOfVolume, v); err != nil {
			return err
		}
		v.Name = i.text(name)
	}
	own := *s
	s.NodeName, s.Hostname, s.Volumes, s.InitContainers, s.Containers, s.EphemeralContainers = "", "", nil, nil, nil, nil
	if err := sharePart(i, partOfSpec, s); err != nil {
		return err
	}
	s.NodeName, s.Hostname, s.Volumes = i.text(own.NodeName), own.Hostname, own.Volumes
	s.InitContainers, s.Containers, s.EphemeralContainers = own.InitContainers, own.Containers, own.EphemeralContainers
	return nil
}

func (i *interner) shareContainer(c *corev1.Container) error {
	mounts, image := c.VolumeMounts, c.Image
	c.VolumeMounts, c.Image = nil, ""
	if err := sharePart(i, partOfContainer, c); err != nil {
		return err
	}
	for at := range mounts {
		mounts[at].Name, mounts[at].MountPath = i.text(mounts[at].Name), i.text(mounts[at].MountPath)
	}
	c.VolumeMounts, c.Image = mounts, i.text(image)
	return nil
}

func (i *interner) shareStatus(s *corev1.ContainerStatus) error {
	common := corev1.ContainerStatus{
		Name: s.Name, Image: s.Image, ImageID: s.ImageID, User: s.User, StopSignal: s.StopSignal, Started: s.Started,
		AllocatedResources: s.AllocatedResources, Resources: s.Resources, AllocatedResourcesStatus: s.AllocatedResourcesStatus,
	}
	if err := sharePart(i, partOfStatus, &common); err != nil {
		return err
	}
	s.Name, s.Image, s.ImageID, s.User, s.StopSignal, s.Started = common.Name, common.Image, common.ImageID, common.User,
		common.StopSignal, common.Started
	s.AllocatedResources, s.Resources, s.AllocatedResourcesStatus = common.AllocatedResources, common.Resources,
		common.AllocatedResourcesStatus
	return nil
}

// sharePart replaces a part of a Pod by the copy that is held of it, or holds a copy of this one. What the copy refers to is shared; its
// outermost level is not, so that the caller may go on to write to that.
func sharePart[T any, P interface {
	*T
	encodes
}](i *interner, kind kindOfPart, value P) error {
	i.key = append(i.key[:0], byte(kind))
	i.key = append(i.key, make([]byte, value.Size())...)
	if _, err := value.MarshalToSizedBuffer(i.key[1:]); err != nil {
		return fmt.Errorf("encoding a part of a Pod: %w", err)
	}
	hash := sha256.Sum256(i.key)
	held, ok := i.parts.get(hash)
	if !ok {
		made := *value
		held = &made
	}
	i.parts.keep(hash, held, heldParts)
	*value = *held.(*T)
	return nil
}
