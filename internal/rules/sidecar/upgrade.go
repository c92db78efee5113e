package sidecar

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/inplace"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// Upgrade changes the Pod, which holds the sidecars and is upgradable, to the present images, and returns in words what that is.
//
// All is written at once: images, the record that the Pod is updated, and what its containers ran before, by which is judged when they have
// followed. Where the containers have those images already only the record changes.
func (t Target) Upgrade(p *corev1.Pod, now time.Time) string {
	c := t.begin(p, now)
	for i := range t.Set.Spec.Containers {
		if sidecar := &t.Set.Spec.Containers[i]; IsHot(sidecar) {
			c.upgradeHot(sidecar)
		} else {
			c.setImage(pod.Container(p, sidecar.Name), sidecar.Image)
		}
	}
	for i := range t.Set.Spec.InitContainers {
		if sidecar := &t.Set.Spec.InitContainers[i]; IsNative(sidecar) {
			c.setImage(pod.Lasting(p, sidecar.Name), sidecar.Image)
		}
	}
	SetRecord(p, keys.SidecarSetHash, Record{
		UpdateTimestamp: c.now, Hash: t.Hashes.Full, SidecarSetName: t.Set.Name, SidecarList: Names(&t.Set.Spec),
		ControllerRevision: t.Revision,
	})
	if records, err := RecordsIn(p, keys.SidecarSetHashWithoutImage); err == nil {
		record := records[t.Set.Name]
		record.SidecarSetName = t.Set.Name
		SetRecord(p, keys.SidecarSetHashWithoutImage, record) // in the present form
	}
	PatchMetadata(p, t.Set.Spec.PatchPodMetadata) // what can't be merged stays
	c.end(t.Hashes.Full)
	if len(c.what) == 0 {
		return "it runs the present images already"
	}
	return strings.Join(c.what, ", ")
}

// Reset gives the image of an idle container to those of the given hot-upgrade sidecars that do not work, and returns in words what that
// is.
func (t Target) Reset(p *corev1.Pod, sidecars []string, now time.Time) string {
	c := t.begin(p, now)
	for _, h := range c.hot() {
		if slices.Contains(sidecars, h.sidecar.Name) {
			c.rest(h.idle, h.sidecar)
			c.setVersion(keys.SidecarSetVersionAltPrefix, h.working.Name, "0")
		}
	}
	c.end(c.state.Revision)
	return strings.Join(c.what, ", ")
}

// change is a Pod that is being changed.
type change struct {
	observed
	now metav1.Time
	// before is what its containers ran, and before this change.
	before map[string]pub.InPlaceUpdateContainerStatus
	// changed are the containers that get another image.
	changed map[string]pub.InPlaceUpdateContainerStatus
	what    []string
}

func (t Target) begin(p *corev1.Pod, now time.Time) *change {
	c := &change{
		observed: t.observed(p), now: metav1.NewTime(now.UTC().Truncate(time.Second)),
		before: map[string]pub.InPlaceUpdateContainerStatus{}, changed: map[string]pub.InPlaceUpdateContainerStatus{},
	}
	for _, name := range c.containers() {
		c.before[name] = inplace.Running(p, name)
	}
	return c
}

func (c *change) setImage(container *corev1.Container, image string) {
	if container == nil || container.Image == image {
		return
	}
	c.what = append(c.what, fmt.Sprintf("%s %s -> %s", container.Name, container.Image, image))
	c.changed[container.Name] = c.before[container.Name]
	container.Image = image
}

// end notes what the changed containers ran. Those that an earlier update changed and that have not followed yet stay noted.
func (c *change) end(hash string) {
	if len(c.changed) == 0 {
		return
	}
	state := State{Revision: hash, UpdateTimestamp: c.now, LastContainerStatuses: c.changed}
	for _, name := range c.containers() {
		last, noted := c.state.LastContainerStatuses[name]
		if _, again := c.changed[name]; noted && !again && !inplace.ImageProgress(c.pod, name, last).Done {
			state.LastContainerStatuses[name] = last
		}
	}
	setState(c.pod, c.set.Name, state)
}

// upgradeHot gives the present image to one of the two containers, which works from then on.
func (c *change) upgradeHot(sidecar *v1beta1.SidecarContainer) {
	chosen, other := c.choose(sidecar)
	idle := sidecar.UpgradeStrategy.HotUpgradeEmptyImage
	if other.Image == sidecar.Image {
		// The other one runs what is wanted: the user went back. A container that failed to take over goes idle again.
		if chosen.Image != idle && c.isServing(other.Name) {
			c.rest(chosen, sidecar)
			c.setVersion(keys.SidecarSetVersionAltPrefix, other.Name, "0")
			SetWorking(c.pod, sidecar.Name, other.Name)
		}
		return
	}
	version := c.nextVersion(other.Name)
	c.setImage(chosen, sidecar.Image)
	SetWorking(c.pod, sidecar.Name, chosen.Name)
	c.setVersion(keys.SidecarSetVersionAltPrefix, chosen.Name, c.pod.Annotations[keys.SidecarSetVersionPrefix+other.Name])
	c.setVersion(keys.SidecarSetVersionPrefix, chosen.Name, version)
	c.setVersion(keys.SidecarSetVersionAltPrefix, other.Name, version)
}

// choose returns the container that is to take over, and the other one: the idle one takes over; where none is idle, the one that does not
// serve while the other does; else the one that does not work.
func (c *change) choose(sidecar *v1beta1.SidecarContainer) (chosen, other *corev1.Container) {
	firstName, secondName := HotContainers(sidecar.Name)
	first, second := pod.Container(c.pod, firstName), pod.Container(c.pod, secondName)
	idle := sidecar.UpgradeStrategy.HotUpgradeEmptyImage
	switch firstServes, secondServes := c.isServing(firstName), c.isServing(secondName); {
	case first.Image == idle:
		return first, second
	case second.Image == idle:
		return second, first
	case firstServes && !secondServes:
		return second, first
	case secondServes && !firstServes:
		return first, second
	case c.working[sidecar.Name] == firstName:
		return second, first
	default:
		return first, second
	}
}

// rest lets a container go idle.
func (c *change) rest(container *corev1.Container, sidecar *v1beta1.SidecarContainer) {
	c.setImage(container, sidecar.UpgradeStrategy.HotUpgradeEmptyImage)
	c.setVersion(keys.SidecarSetVersionPrefix, container.Name, "0")
}

func (c *change) setVersion(prefix, container, version string) {
	metav1.SetMetaDataAnnotation(&c.pod.ObjectMeta, prefix+container, cmp.Or(version, "0"))
}

// nextVersion returns the version of the container that takes over from other: the resource version of the SidecarSet, or more where that
// would not be more than the other's, as in a cluster that was restored from a backup.
func (c *change) nextVersion(other string) string {
	present, _ := strconv.ParseInt(c.set.ResourceVersion, 10, 64)                                // no number counts as 0
	theirs, _ := strconv.ParseInt(c.pod.Annotations[keys.SidecarSetVersionPrefix+other], 10, 64) // none counts as 0
	return strconv.FormatInt(max(present, theirs+1), 10)
}
