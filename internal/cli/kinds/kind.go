// Package kinds says what the command line knows of each kind: where its fields are, and what its status tells of progress.
//
// It is pure. Objects are of the hub version of their kind: an object that was read in an older version is converted before.
package kinds

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/progress"
)

// Kind is what the commands know of a kind.
type Kind struct {
	// GroupVersionKind is that of the hub version.
	schema.GroupVersionKind
	// Resource is the name of the kind in URLs.
	Resource string
	// Paused is the path of the field that pauses it; nil for a kind that can't be paused.
	Paused []string
	// Template is the path of the Pod template; nil for a kind that has none, or whose template lies deeper (UnitedDeployment).
	Template []string
	// Selector is the path of the selector of its Pods; nil for a kind that has none.
	Selector []string
	// PodsToDelete is the path of the names of Pods that are deleted by a lower number of replicas; nil for a kind that has no such list.
	PodsToDelete []string
	// Revisions says how its earlier templates are stored.
	Revisions Revisions
	// Cluster means that its objects are in no namespace.
	Cluster bool

	// as returns an object of the kind as one of its type.
	as func(*unstructured.Unstructured) (metav1.Object, error)
}

// Revisions says how earlier templates of a kind are stored.
type Revisions string

const (
	// NoRevisions is a kind of which no earlier template is stored.
	NoRevisions Revisions = ""
	// ControllerRevisions are objects of their own, owned by the object.
	ControllerRevisions Revisions = "ControllerRevisions"
	// ReplicaSets hold the templates of a Deployment.
	ReplicaSets Revisions = "ReplicaSets"
)

// All returns all kinds, in the order in which they are shown.
func All() []Kind {
	return slices.Concat(ofKruise(), native(), []Kind{{
		GroupVersionKind: rolloutsv1beta1.GroupVersion.WithKind("Rollout"), Resource: "rollouts",
		Paused: []string{"spec", "strategy", "paused"}, as: as[rolloutsv1beta1.Rollout],
	}})
}

func ofKruise() []Kind {
	template, selector := []string{"spec", "template"}, []string{"spec", "selector"}
	return []Kind{
		{
			GroupVersionKind: v1beta1.GroupVersion.WithKind("CloneSet"), Resource: "clonesets",
			Paused:   []string{"spec", "updateStrategy", "rollingUpdate", "paused"},
			Template: template, Selector: selector, PodsToDelete: []string{"spec", "scaleStrategy", "podsToDelete"},
			Revisions: ControllerRevisions, as: as[v1beta1.CloneSet],
		},
		{
			GroupVersionKind: v1beta1.GroupVersion.WithKind("StatefulSet"), Resource: "statefulsets",
			Paused:   []string{"spec", "updateStrategy", "rollingUpdate", "paused"},
			Template: template, Selector: selector, Revisions: ControllerRevisions, as: as[v1beta1.StatefulSet],
		},
		{
			GroupVersionKind: v1beta1.GroupVersion.WithKind("DaemonSet"), Resource: "daemonsets",
			Paused:   []string{"spec", "updateStrategy", "rollingUpdate", "paused"},
			Template: template, Selector: selector, Revisions: ControllerRevisions, as: as[v1beta1.DaemonSet],
		},
		{
			GroupVersionKind: v1beta1.GroupVersion.WithKind("UnitedDeployment"), Resource: "uniteddeployments",
			Selector: selector, Revisions: ControllerRevisions, as: as[v1beta1.UnitedDeployment],
		},
		{
			GroupVersionKind: v1beta1.GroupVersion.WithKind("SidecarSet"), Resource: "sidecarsets", Cluster: true,
			Paused: []string{"spec", "updateStrategy", "paused"}, Revisions: ControllerRevisions, as: as[v1beta1.SidecarSet],
		},
		{
			GroupVersionKind: v1beta1.GroupVersion.WithKind("BroadcastJob"), Resource: "broadcastjobs",
			Paused: []string{"spec", "paused"}, Template: template, as: as[v1beta1.BroadcastJob],
		},
		{
			GroupVersionKind: v1beta1.GroupVersion.WithKind("ImagePullJob"), Resource: "imagepulljobs", as: as[v1beta1.ImagePullJob],
		},
		{
			GroupVersionKind: v1beta1.GroupVersion.WithKind("ImageListPullJob"), Resource: "imagelistpulljobs",
			as: as[v1beta1.ImageListPullJob],
		},
	}
}

// Of returns the kind of a group and a name.
func Of(kind schema.GroupKind) (Kind, error) {
	all := All()
	if i := slices.IndexFunc(all, func(k Kind) bool { return k.GroupKind() == kind }); i >= 0 {
		return all[i], nil
	}
	var known []string
	for _, k := range all {
		known = append(known, k.String())
	}
	name := kind.Kind
	if kind.Group != "" {
		name += "." + kind.Group
	}
	return Kind{}, fmt.Errorf("%s is no kind that this program knows: use one of %s", name, strings.Join(known, ", "))
}

// IsKruise reports whether the kind is one of Kruise, and so has a version that is converted.
func (k Kind) IsKruise() bool {
	return slices.Contains([]string{
		v1beta1.GroupVersion.Group, rolloutsv1beta1.GroupVersion.Group, policyv1beta1.GroupVersion.Group,
	}, k.Group)
}

// String names the kind as a person would; kinds of Kruise that have a namesake in Kubernetes get their group.
func (k Kind) String() string {
	if k.Kind == "StatefulSet" || k.Kind == "DaemonSet" {
		return k.Kind + "." + k.Group
	}
	return k.Kind
}

// Arg names an object of the kind as an argument of a command: the resource, with its group where Kubernetes has a namesake, and the name.
func (k Kind) Arg(name string) string {
	resource := strings.ToLower(k.Kind)
	if k.Group == v1beta1.GroupVersion.Group && (k.Kind == "StatefulSet" || k.Kind == "DaemonSet") {
		resource = map[string]string{"StatefulSet": "asts", "DaemonSet": "ads"}[k.Kind]
	}
	return resource + "/" + name
}

// Progress reads off the status of an object how far it has come.
func (k Kind) Progress(o *unstructured.Unstructured) (progress.Progress, error) {
	typed, err := k.as(o)
	if err != nil {
		return progress.Progress{}, fmt.Errorf("reading the status of %s %s: %w", k, o.GetName(), err)
	}
	p, err := progress.Of(typed)
	if err != nil {
		return progress.Progress{}, fmt.Errorf("reading the status of %s %s: %w", k, o.GetName(), err)
	}
	return p, nil
}

// IsPaused reports whether an object is paused.
func (k Kind) IsPaused(o *unstructured.Unstructured) bool {
	paused, _, _ := unstructured.NestedBool(o.Object, k.Paused...)
	return len(k.Paused) > 0 && paused
}

// as returns an object as one of a type.
func as[T any, P interface {
	*T
	metav1.Object
}](o *unstructured.Unstructured) (metav1.Object, error) {
	into := P(new(T))
	return into, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into)
}
