package steer

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/release"
	"github.com/seed-69ecc383/kruise/internal/rules/replicasets"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// canaries steers Deployments in canary style. During a release the Deployment is paused and keeps all of its Pods; nothing else of its
// spec is changed. Pods of the new template are those of a second Deployment, which the BatchRelease owns and which goes with it. In the
// end the Deployment itself is rolled out by its own controller.
//
// An annotation comes and goes together with the pause: a write that unpauses the Deployment and leaves the annotation is not ours.
type canaries struct{ deployments }

// Refuses says why a change of a Deployment is not a release in steps.
func (k canaries) Refuses(o Objects) string {
	switch {
	case replicasOf(o.Workload.(*appsv1.Deployment).Spec.Replicas) == 0:
		return "it has no Pods"
	case k.serving(o) == nil:
		return "it has no ReplicaSet with Pods"
	}
	return ""
}

// serving returns the ReplicaSet that a release comes from, or else the one with most Pods; nil if none has any.
func (k canaries) serving(o Objects) *appsv1.ReplicaSet {
	if stable := k.stable(o); stable != nil {
		return stable
	}
	var most *appsv1.ReplicaSet
	for _, rs := range k.sets(o) {
		if sizeOf(rs) > 0 && (most == nil || sizeOf(rs) > sizeOf(most)) {
			most = rs
		}
	}
	return most
}

// Freeze pauses a Deployment, and notes which of its ReplicaSets is the stable one.
func (k canaries) Freeze(o Objects) Object {
	d := copyOf(o.Workload).(*appsv1.Deployment)
	keepPaused(d)
	if serving := k.serving(o); serving != nil && serving.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != "" {
		d.Labels = with(d.Labels, keys.StableRevision, serving.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
	}
	return d
}

// keepPaused changes a Deployment.
func keepPaused(d *appsv1.Deployment) {
	d.Spec.Paused = true
	annotate(d, keys.DeploymentStrategy, replicasets.Strategy{RollingStyle: replicasets.CanaryStyle}.String())
}

// isKeptPaused tells whether a release of canary style keeps a Deployment paused.
func isKeptPaused(d *appsv1.Deployment) bool {
	annotation, annotated := d.Annotations[keys.DeploymentStrategy]
	strategy, err := replicasets.Parse(annotation)
	return annotated && err == nil && strategy.RollingStyle == replicasets.CanaryStyle
}

// StyleOfDeployment returns the style of the release that has a Deployment in hand, as the Deployment tells it.
func StyleOfDeployment(d *appsv1.Deployment) v1beta1.RollingStyle {
	switch {
	case isBlueGreen(d):
		return v1beta1.RollingStyleBlueGreen
	case isKeptPaused(d):
		return v1beta1.RollingStyleCanary
	}
	return v1beta1.RollingStylePartition
}

// with returns a copy of labels with one more.
func with(labels map[string]string, key, value string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}

// Guard keeps a Deployment paused that somebody unpauses, or whose strategy somebody makes one that deletes all Pods at once. Where
// somebody has replaced the whole object, that shows in the label of its kind, which is gone.
func (canaries) Guard(old Object, o Objects) Object {
	was, is := old.(*appsv1.Deployment), o.Workload.(*appsv1.Deployment)
	isReplaced := is.Labels[keys.WorkloadType] == ""
	if !isKeptPaused(was) || !isKeptPaused(is) && !isReplaced {
		return o.Workload // what ends a release takes the annotation away
	}
	return stillPaused(was, is)
}

// stillPaused returns a Deployment as it is written, but paused, and not with the strategy Recreate if it had another one.
func stillPaused(was, is *appsv1.Deployment) *appsv1.Deployment {
	next := copyOf(is).(*appsv1.Deployment)
	next.Spec.Paused = true
	if is.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType && was.Spec.Strategy.Type != is.Spec.Strategy.Type {
		next.Spec.Strategy = was.Spec.Strategy
	}
	if equality.Semantic.DeepEqual(next, is) {
		return is
	}
	return next
}

// See returns what is known of a Deployment and of the second one.
func (k canaries) See(o Objects) Facts {
	d := o.Workload.(*appsv1.Deployment)
	f := k.deployments.See(o)
	f.Frozen = IsReleased(d) && d.Spec.Paused
	isUpdated := k.Updated(o)
	f.Updated, _ = count(o, isUpdated)
	f.Ready = available(o, isUpdated, d.Spec.MinReadySeconds)
	f.After = untilAvailable(o, isUpdated, d.Spec.MinReadySeconds)
	switch second := k.second(o, f.Update); {
	case second != nil:
		f.PodHash = ""
		if fresh := replicasets.New(second, setsOf(o, second)); fresh != nil {
			f.PodHash = fresh.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		}
	case f.Frozen && !f.RolledBack: // its Pods will be those of a second Deployment
		f.PodHash = ""
	}
	return f
}

// untilAvailable returns how long until the next live updated Pod has been ready for long enough; 0 if none is going to by time alone.
func untilAvailable(o Objects, isUpdated func(*corev1.Pod) bool, minReadySeconds int32) (first time.Duration) {
	for _, p := range o.Pods {
		_, wait := pod.Available(p, minReadySeconds, o.Now)
		if wait > 0 && (first == 0 || wait < first) && pod.IsActive(p) && isUpdated(p) {
			first = wait
		}
	}
	return first
}

// second returns the second Deployment of a revision; nil if there is none, or if it is being deleted.
func (canaries) second(o Objects, of string) *appsv1.Deployment {
	for _, d := range o.Canaries {
		if d.DeletionTimestamp == nil && d.Annotations[keys.CanaryRevision] == of {
			return d
		}
	}
	return nil
}

// setsOf returns the ReplicaSets of a Deployment.
func setsOf(o Objects, d *appsv1.Deployment) []*appsv1.ReplicaSet {
	var out []*appsv1.ReplicaSet
	for _, rs := range o.ReplicaSets {
		if metav1.IsControlledBy(rs, d) {
			out = append(out, rs)
		}
	}
	return out
}

// Updated goes by the second Deployment of the present template, and by the new ReplicaSet of the Deployment itself.
func (k canaries) Updated(o Objects) func(*corev1.Pod) bool {
	isOfFirst := k.deployments.Updated(o)
	present := replicasets.Hash(&o.Workload.(*appsv1.Deployment).Spec.Template, nil)
	isPresent := map[types.UID]bool{} // by ReplicaSet of a second Deployment
	for _, d := range o.Canaries {
		for _, rs := range setsOf(o, d) {
			isPresent[rs.UID] = d.Annotations[keys.CanaryRevision] == present
		}
	}
	return func(p *corev1.Pod) bool {
		if by := metav1.GetControllerOfNoCopy(p); by != nil {
			if is, ofSecond := isPresent[by.UID]; ofSecond {
				return is
			}
		}
		return isOfFirst(p)
	}
}

// Planned returns how many Pods a step gives the second Deployment.
func (canaries) Planned(o Objects, step *intstr.IntOrString) (int32, error) {
	return release.Planned(step, replicasOf(o.Workload.(*appsv1.Deployment).Spec.Replicas))
}

// Batch has a second Deployment run the Pods of the batch. Its size is never lowered. One of another template, which the same BatchRelease
// has made, gets no Pods.
func (k canaries) Batch(o Objects, b Batch) (Writes, error) {
	d := o.Workload.(*appsv1.Deployment)
	planned, err := k.Planned(o, b.Step)
	if err != nil {
		return Writes{}, fmt.Errorf("steps: %w", err)
	}
	w := unchanged(o)
	next := copyOf(d).(*appsv1.Deployment)
	keepPaused(next)
	if !equality.Semantic.DeepEqual(next, d) { // somebody has written it while no webhook was there
		w.Workload = next
	}
	wanted := secondOf(d, b, planned)
	isThere := false
	for _, was := range o.Canaries {
		switch {
		case !metav1.IsControlledBy(was, &metav1.ObjectMeta{UID: b.Owner.UID}):
		case was.Name == wanted.Name:
			isThere = true
			if replicasOf(was.Spec.Replicas) < planned && !b.Paused && was.DeletionTimestamp == nil {
				w.Then = append(w.Then, resized(was, planned))
			}
		case replicasOf(was.Spec.Replicas) > 0 && was.DeletionTimestamp == nil:
			w.Then = append(w.Then, resized(was, 0))
		}
	}
	if !isThere && !b.Paused {
		what := fmt.Sprintf("make a second Deployment with %d Pods of the new template", planned)
		w.Then = append(w.Then, Change{After: wanted, What: what})
	}
	return w, nil
}

func resized(d *appsv1.Deployment, replicas int32) Change {
	after := d.DeepCopy()
	after.Spec.Replicas = &replicas
	return Change{Before: d, After: after, What: fmt.Sprintf("scale the second Deployment to %d Pods", replicas)}
}

// Promote has the native controller roll the Deployment out, with the strategy that its user wrote. The second one stays until its
// BatchRelease goes.
func (k canaries) Promote(o Objects) Writes {
	d := o.Workload.(*appsv1.Deployment)
	if isInBatches(d) {
		return k.deployments.Promote(o)
	}
	if !isKeptPaused(d) && !(IsReleased(d) && d.Spec.Paused) {
		return unchanged(o)
	}
	next := withoutAnnotations(copyOf(d), keys.DeploymentStrategy).(*appsv1.Deployment)
	next.Spec.Paused = false
	return Writes{Workload: next}
}

// Remains says what a Deployment that is rolled out natively has still to do: the second one serves until all Pods of the Deployment itself
// are updated, and as many of them available as it has to have.
func (k canaries) Remains(o Objects) string {
	d := o.Workload.(*appsv1.Deployment)
	limits, err := replicasets.LimitsOf(&d.Spec, new(intstr.IntOrString))
	fresh := replicasets.New(d, k.sets(o))
	if err != nil || fresh == nil || d.Status.ObservedGeneration != d.Generation {
		return "its status is not up to date"
	}
	updated, old := int32(0), int32(0)
	for _, p := range o.Pods {
		switch {
		case !pod.IsActive(p):
		case metav1.IsControlledBy(p, fresh):
			updated++
		case slices.ContainsFunc(k.sets(o), func(rs *appsv1.ReplicaSet) bool { return metav1.IsControlledBy(p, rs) }):
			old++
		}
	}
	isFresh := func(p *corev1.Pod) bool { return metav1.IsControlledBy(p, fresh) }
	done := available(o, isFresh, d.Spec.MinReadySeconds)
	if updated >= limits.Replicas && old == 0 && done >= limits.Replicas-limits.Unavailable {
		return ""
	}
	return fmt.Sprintf("%d of %d Pods are updated and available", done, limits.Replicas)
}

// labelOfName returns the value of a label that names a Deployment: its name, or the beginning of it and a hash.
func labelOfName(name string) string {
	const most = 63
	if len(name) <= most {
		return name
	}
	hash := shortHash(name)
	return name[:most-len(hash)-1] + "-" + hash
}

// shortHash returns a short text that differs for texts that differ.
func shortHash(texts ...string) string {
	h := fnv.New32a()
	for _, text := range texts {
		_, _ = h.Write([]byte(text + "/")) // a hash takes everything
	}
	return revision.Encode(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// CanaryLabel returns the label by which the second Deployments of a Deployment are found.
func CanaryLabel(deployment string) map[string]string {
	return map[string]string{keys.CanaryDeployment: labelOfName(deployment)}
}

// secondOf returns the second Deployment of a batch. Its name follows from the template and from the BatchRelease, so that there is one at
// most however often it is made. It takes over nothing of the Deployment's own labels and annotations, by which tools would take it for an
// object of their own.
func secondOf(d *appsv1.Deployment, b Batch, replicas int32) *appsv1.Deployment {
	update := replicasets.Hash(&d.Spec.Template, nil)
	hash := shortHash(string(b.Owner.UID), update)
	const most = 253
	out := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name[:min(len(d.Name), most-len(hash)-1)] + "-" + hash,
			Labels: CanaryLabel(d.Name), Annotations: map[string]string{keys.CanaryRevision: update},
			OwnerReferences: []metav1.OwnerReference{b.Owner},
		},
		Spec: *d.Spec.DeepCopy(),
	}
	out = Claim(out, b.Owner).(*appsv1.Deployment)
	out.Spec.Replicas, out.Spec.Paused = &replicas, false
	template := &out.Spec.Template
	if b.Metadata != nil {
		for key, value := range b.Metadata.Labels {
			template.Labels = with(template.Labels, key, value)
		}
		for key, value := range b.Metadata.Annotations {
			template.Annotations = with(template.Annotations, key, value)
		}
	}
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	template.Labels = with(template.Labels, keys.CanaryDeployment, labelOfName(d.Name))
	selector := &metav1.LabelSelector{MatchLabels: CanaryLabel(d.Name)}
	if d.Spec.Selector != nil {
		for key := range d.Spec.Selector.MatchLabels {
			selector.MatchLabels[key] = cmp.Or(template.Labels[key], d.Spec.Selector.MatchLabels[key])
		}
	}
	out.Spec.Selector = selector
	return out
}
