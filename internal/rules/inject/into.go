package inject

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// Options are the ways in which Pods are changed.
type Options struct {
	// SortByName sorts sidecars of all SidecarSets by name; else they stand in the order of their SidecarSets.
	SortByName bool
	Now        time.Time
}

// Notice is something about a Pod that the user who creates it should know.
type Notice struct {
	// SidecarSet is the name of the one that it comes from.
	SidecarSet string
	// Replaced is the container of the Pod that a sidecar took the place of, if that is what happened.
	Replaced string
	Text     string
}

// Into puts sidecars into a new Pod; all are in the order of their SidecarSets' names. An error is one of the Pod and a SidecarSet that
// don't go together. There must be one at least.
func Into(p *corev1.Pod, all []*Sidecars, o Options) ([]Notice, error) {
	i := &injection{pod: p, all: all, options: o, own: ownContainers(p), containers: make([]built, 0, len(all))}
	for _, s := range all {
		for _, problem := range sidecar.PatchMetadata(p, s.set.Spec.PatchPodMetadata) {
			i.notice(s, "%v", problem)
		}
	}
	for _, s := range all {
		if err := i.build(s); err != nil {
			return nil, fmt.Errorf("SidecarSet %s: %w", s.set.Name, err)
		}
	}
	byName := func(a, b built) int { return strings.Compare(a.Name, b.Name) }
	slices.SortStableFunc(i.init, byName)
	if o.SortByName {
		slices.SortStableFunc(i.containers, byName)
	}
	p.Spec.InitContainers = i.place(p.Spec.InitContainers, i.init)
	p.Spec.Containers = i.place(p.Spec.Containers, i.containers)
	i.addVolumes()
	for _, s := range all {
		i.addPullSecrets(s)
	}
	i.record()
	return i.notices, nil
}

// injection is what becomes of one Pod.
type injection struct {
	pod     *corev1.Pod
	all     []*Sidecars
	options Options
	// names are those of all sidecars; nil until they are needed.
	names sets.Set[string]
	// own are the Pod's containers that are no sidecars.
	own              []*corev1.Container
	init, containers []built
	notices          []Notice
}

// built is a sidecar as it is for this Pod.
type built struct {
	corev1.Container
	after bool
	from  *Sidecars
}

func (i *injection) notice(s *Sidecars, format string, args ...any) {
	i.notices = append(i.notices, Notice{SidecarSet: s.set.Name, Text: "SidecarSet " + s.set.Name + ": " + fmt.Sprintf(format, args...)})
}

// isSidecar reports whether a container of this name is one that is put into the Pod.
func (i *injection) isSidecar(name string) bool {
	if i.names == nil {
		i.names = sets.New[string]()
		for _, s := range i.all {
			for c := range sidecar.All(&s.set.Spec) {
				i.names.Insert(c.Name)
				if first, second := sidecar.HotContainers(c.Name); sidecar.IsHot(c) {
					i.names.Insert(first, second)
				}
			}
		}
	}
	return i.names.Has(name)
}

// ownContainers returns the containers that no SidecarSet has put into the Pod.
func ownContainers(p *corev1.Pod) []*corev1.Container {
	var own []*corev1.Container
	for j := range p.Spec.Containers {
		if c := &p.Spec.Containers[j]; !isInjected(c) {
			own = append(own, c.DeepCopy())
		}
	}
	return own
}

func isInjected(c *corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(env corev1.EnvVar) bool { return env.Name == keys.SidecarInjectedEnv && env.Value == "true" })
}

// build makes the sidecars of a set for this Pod.
func (i *injection) build(s *Sidecars) error {
	for j := range s.set.Spec.InitContainers {
		from := &s.set.Spec.InitContainers[j]
		c, err := i.container(s, from)
		if err != nil {
			return err
		}
		i.init = append(i.init, built{Container: c, after: from.PodInjectPolicy != v1beta1.BeforeAppContainerType, from: s})
	}
	for j := range s.set.Spec.Containers {
		from := &s.set.Spec.Containers[j]
		c, err := i.container(s, from)
		if err != nil {
			return err
		}
		after := from.PodInjectPolicy == v1beta1.AfterAppContainerType
		if !sidecar.IsHot(from) {
			i.containers = append(i.containers, built{Container: c, after: after, from: s})
			continue
		}
		for _, one := range i.hotContainers(from, c) {
			i.containers = append(i.containers, built{Container: one, after: after, from: s})
		}
	}
	return nil
}

// container returns a sidecar with all that it takes from the Pod.
func (i *injection) container(s *Sidecars, from *v1beta1.SidecarContainer) (corev1.Container, error) {
	c := *from.Container.DeepCopy()
	shared := i.share(from, &c)
	transferred, err := i.transferred(from)
	if err != nil {
		return c, fmt.Errorf("container %s: %w", from.Name, err)
	}
	c.Env = environment(c.Env, append(transferred, shared...))
	if p, ok := s.policies[from.Name]; ok {
		notices, err := p.apply(&c, i.targets(p))
		if err != nil {
			return c, fmt.Errorf("container %s: %w", from.Name, err)
		}
		for _, notice := range notices {
			i.notice(s, "container %s: %s", from.Name, notice)
		}
	}
	return c, nil
}

// place puts sidecars before and after the containers of a list. One whose name is there already takes that place.
func (i *injection) place(list []corev1.Container, sidecars []built) []corev1.Container {
	if len(sidecars) == 0 {
		return list
	}
	there := make(map[string]int, len(list))
	for j := range slices.Backward(list) {
		there[list[j].Name] = j // of two, the first one
	}
	out := make([]corev1.Container, 0, len(list)+len(sidecars))
	for j := range sidecars {
		s := &sidecars[j]
		at, replaces := there[s.Name]
		switch {
		case replaces:
			if !isInjected(&list[at]) {
				name := s.from.set.Name
				i.notices = append(i.notices, Notice{
					SidecarSet: name, Replaced: s.Name, Text: fmt.Sprintf("container %s is replaced by SidecarSet %s", s.Name, name),
				})
			}
			list[at] = s.Container
		case !s.after:
			out = append(out, s.Container)
		}
	}
	out = append(out, list...)
	for j := range sidecars {
		s := &sidecars[j]
		if _, replaces := there[s.Name]; s.after && !replaces {
			out = append(out, s.Container)
		}
	}
	return out
}

// addVolumes adds those volumes of each set that its sidecars mount or map and that the Pod does not define.
func (i *injection) addVolumes() {
	volumes := i.pod.Spec.Volumes
	defined := make(map[string]bool, len(volumes)+len(i.all))
	for j := range volumes {
		defined[volumes[j].Name] = true
	}
	missing := make([]corev1.Volume, 0, len(i.all))
	for _, s := range i.all {
		for _, volume := range s.volumes {
			if !defined[volume.Name] {
				defined[volume.Name] = true
				missing = append(missing, *volume.DeepCopy())
			}
		}
	}
	i.pod.Spec.Volumes = append(i.pod.Spec.Volumes, missing...)
}

func (i *injection) addPullSecrets(s *Sidecars) {
	for _, secret := range s.set.Spec.ImagePullSecrets {
		if !slices.Contains(i.pod.Spec.ImagePullSecrets, secret) {
			i.pod.Spec.ImagePullSecrets = append(i.pod.Spec.ImagePullSecrets, secret)
		}
	}
}

// record notes on the Pod what was put into it. A note that says so already keeps its time.
func (i *injection) record() {
	now := metav1.NewTime(i.options.Now.UTC().Truncate(time.Second))
	for _, note := range []struct {
		key string
		of  func(*Sidecars) (hash, revision string)
	}{
		{keys.SidecarSetHash, func(s *Sidecars) (string, string) { return s.hashes.Full, s.revision }},
		{keys.SidecarSetHashWithoutImage, func(s *Sidecars) (string, string) { return s.hashes.WithoutImage, "" }},
	} {
		before, err := sidecar.RecordsIn(i.pod, note.key)
		if err != nil {
			i.notice(i.all[0], "what the Pod brought along can't be read, and is dropped: %v", err)
		}
		var changed []sidecar.Record
		for _, s := range i.all {
			hash, revision := note.of(s)
			was, there := before[s.set.Name]
			if there && err == nil && was.Hash == hash && was.ControllerRevision == revision && slices.Equal(was.SidecarList, s.names) {
				continue
			}
			changed = append(changed, sidecar.Record{
				UpdateTimestamp: now, Hash: hash, SidecarSetName: s.set.Name, SidecarList: s.names, ControllerRevision: revision,
			})
		}
		if len(changed) > 0 {
			sidecar.SetRecord(i.pod, note.key, changed...)
		}
	}
	var names []string
	for _, s := range i.all {
		names = append(names, s.set.Name)
	}
	sidecar.AddInjected(i.pod, names...)
}

// hotContainers returns the two containers of a hot-upgrade sidecar, of which the first one works and the second one is idle. In a Pod that
// was written from another one, which of them works, and their versions, stay as they were.
func (i *injection) hotContainers(from *v1beta1.SidecarContainer, c corev1.Container) []corev1.Container {
	first, second := sidecar.HotContainers(from.Name)
	working, _ := sidecar.WorkingIn(i.pod) // one that can't be read is written anew
	idle := second
	switch areThere := pod.Container(i.pod, first) != nil && pod.Container(i.pod, second) != nil; {
	case areThere && working[from.Name] == first:
	case areThere && working[from.Name] == second:
		idle = first
	default:
		sidecar.SetWorking(i.pod, from.Name, first)
		i.setVersions(first, "1", "0")
		i.setVersions(second, "0", "1")
	}
	var both []corev1.Container
	for _, name := range []string{first, second} {
		one := *c.DeepCopy()
		one.Name = name
		if name == idle {
			one.Image = from.UpgradeStrategy.HotUpgradeEmptyImage
		}
		for _, version := range []struct{ env, annotation string }{
			{keys.SidecarSetVersionEnv, keys.SidecarSetVersionPrefix + name},
			{keys.SidecarSetVersionAltEnv, keys.SidecarSetVersionAltPrefix + name},
		} {
			one.Env = slices.DeleteFunc(one.Env, func(env corev1.EnvVar) bool { return env.Name == version.env })
			one.Env = append(one.Env, corev1.EnvVar{Name: version.env, ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + version.annotation + "']"},
			}})
		}
		both = append(both, one)
	}
	return both
}

func (i *injection) setVersions(container, version, alternative string) {
	metav1.SetMetaDataAnnotation(&i.pod.ObjectMeta, keys.SidecarSetVersionPrefix+container, version)
	metav1.SetMetaDataAnnotation(&i.pod.ObjectMeta, keys.SidecarSetVersionAltPrefix+container, alternative)
}
