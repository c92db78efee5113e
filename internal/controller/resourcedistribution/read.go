package resourcedistribution

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/loop"
	"github.com/seed-69ecc383/kruise/internal/observe"
	"github.com/seed-69ecc383/kruise/internal/rules/distribution"
)

// fewReads is how many objects are read one by one before it is asked in one request which of them are there at all.
const fewReads = 10

// Snapshot is all that one pass may look at. It is read once and never changed.
type Snapshot struct {
	Owner *v1beta1.ResourceDistribution
	// Source is what the copies are made from; nil where Problem says why it is not known.
	Source *distribution.Source
	// Problem is why the source or the targets are not known.
	Problem error
	// Namespaces are those that exist.
	Namespaces map[string]distribution.Namespace
	// Others are the UIDs of all other ResourceDistributions.
	Others map[types.UID]bool
	// Targets are the namespaces that are to have a copy, sorted.
	Targets []string
	// Copies are the objects that carry the label of the owner, by namespace. Only their metadata is known.
	Copies map[string]client.Object
	// Verified are the versions of copies that are known to be as they are to be, by UID.
	Verified map[types.UID]string
	// Found are the objects with the name of the copy in those namespaces where they had to be looked at; nil where there is none. Failed
	// says where they could not be read.
	Found  map[string]distribution.Object
	Failed map[string]error
	Now    time.Time
}

// read makes every read of a pass.
func (o Options) read(ctx context.Context, r loop.Reads, owner *v1beta1.ResourceDistribution) (State, error) {
	s := Snapshot{Owner: owner, Now: r.Now, Found: map[string]distribution.Object{}, Failed: map[string]error{}}
	if err := s.readSource(ctx, r, o); err != nil || s.Problem != nil {
		return Classify(s), err
	}
	if err := s.readNamespaces(ctx, r.Reader); err != nil || s.Problem != nil {
		return Classify(s), err
	}
	if err := s.readOthers(ctx, r.Reader); err != nil {
		return State{}, err
	}
	kind := s.kind()
	read := o.Copies.Of
	if !r.Indexed { // the cache can't be trusted
		read = func(ctx context.Context, kind string, _ types.UID) ([]client.Object, error) {
			return o.Copies.Named(ctx, kind, s.name())
		}
	}
	copies, err := read(ctx, kind, owner.UID)
	if err != nil {
		return State{}, fmt.Errorf("listing the copies: %w", err)
	}
	s.Copies = map[string]client.Object{}
	for _, object := range copies {
		if object.GetName() == s.name() && isOurs(object, owner) {
			s.Copies[object.GetNamespace()] = object
		}
	}
	s.Verified = map[types.UID]string{}
	o.verified.Peek(owner.UID, func(known *map[types.UID]version) {
		for uid, v := range *known {
			if v.source == s.fingerprint() {
				s.Verified[uid] = v.copy
			}
		}
	})
	if err := s.look(ctx, o, r.Live); err != nil {
		return State{}, err
	}
	return Classify(s), nil
}

// isOurs reports whether an object was made by the owner, or taken over. One without a controller is known by its label: copies that are to
// outlive the owner have none.
func isOurs(object metav1.Object, owner *v1beta1.ResourceDistribution) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	if controller == nil {
		return object.GetLabels()[keys.DistributedBy] == string(owner.UID)
	}
	return controller.UID == owner.UID
}

func (s *Snapshot) readSource(ctx context.Context, r loop.Reads, o Options) error {
	if raw := s.Owner.Spec.Resource; raw != nil {
		source, err := distribution.Parse(raw.Raw)
		if err != nil {
			s.Problem = err
			return nil
		}
		s.Source, s.Problem = &source, o.unserved(distribution.KindOf(source.Object))
		return nil
	}
	from := s.Owner.Spec.ResourceFrom
	if from == nil {
		s.Problem = fmt.Errorf("there is neither spec.resource nor spec.resourceFrom")
		return nil
	}
	if s.Problem = o.unserved(from.Kind); s.Problem != nil {
		return nil
	}
	object := distribution.New(from.Kind)
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: from.Namespace, Name: from.Name}, object.(client.Object))
	if apierrors.IsNotFound(err) {
		s.Problem = fmt.Errorf("%s %s/%s of spec.resourceFrom does not exist", from.Kind, from.Namespace, from.Name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s/%s: %w", from.Kind, from.Namespace, from.Name, err)
	}
	source := distribution.From(object)
	s.Source = &source
	return nil
}

// unserved returns why a kind is not distributed; nil if it is.
func (o Options) unserved(kind string) error {
	if slices.ContainsFunc(o.Kinds, func(k distribution.Kind) bool { return k.Kind == kind }) {
		return nil
	}
	return fmt.Errorf("%s", distribution.Unserved(kind))
}

func (s *Snapshot) readNamespaces(ctx context.Context, r observe.Reader) (err error) {
	var list corev1.NamespaceList
	namespaces, err := observe.List(ctx, r, &list, &list.Items)
	if err != nil {
		return err
	}
	s.Namespaces = map[string]distribution.Namespace{}
	for _, n := range namespaces {
		s.Namespaces[n.Name] = distribution.Namespace{Labels: n.Labels, Deleting: distribution.IsTerminating(n)}
	}
	if s.Targets, err = distribution.Targets(&s.Owner.Spec, s.Namespaces); err != nil {
		s.Problem = fmt.Errorf("reading spec.targets: %w", err)
	}
	return nil
}

func (s *Snapshot) readOthers(ctx context.Context, r observe.Reader) error {
	var list v1beta1.ResourceDistributionList
	all, err := observe.List(ctx, r, &list, &list.Items)
	s.Others = map[types.UID]bool{}
	for _, other := range all {
		s.Others[other.UID] = other.UID != s.Owner.UID
	}
	return err
}

// kind is the kind of the copies, name their name.
func (s *Snapshot) kind() string { return distribution.KindOf(s.Source.Object) }
func (s *Snapshot) name() string { return s.Source.NameOf(s.Owner) }

// fingerprint tells everything that decides how a copy is to be.
func (s *Snapshot) fingerprint() string {
	var besides v1beta1.DistributedCopies
	if s.Owner.Spec.Copies != nil {
		besides = *s.Owner.Spec.Copies
	}
	// Maps are printed in the order of their keys.
	return fmt.Sprint(s.Source.Hash, s.Owner.Spec.DeletionPolicy, s.Owner.Spec.ExpandNamespace, s.Owner.Name, besides)
}

// isVerified reports whether a copy is of a version that is known to be as it is to be.
func (s *Snapshot) isVerified(object client.Object) bool {
	known, ok := s.Verified[object.GetUID()]
	return ok && known == object.GetResourceVersion()
}

// look reads the objects of those target namespaces in which nothing is known to be as it is to be. Copies that a rollout does not reach
// yet need not be looked at.
func (s *Snapshot) look(ctx context.Context, o Options, live client.Reader) error {
	var asked []string
	reached := distribution.Reach(s.Targets, s.Owner.Spec.Rollout)
	for _, name := range s.Targets {
		object, copied := s.Copies[name]
		namespace, exists := s.Namespaces[name]
		held := copied && !reached[name] && object.GetAnnotations()[keys.DistributedHash] != s.Source.Hash
		if exists && !namespace.Deleting && !held && !(copied && s.isVerified(object)) {
			asked = append(asked, name)
		}
	}
	if len(asked) > fewReads {
		there, err := o.Copies.Named(ctx, s.kind(), s.name())
		if err != nil {
			return fmt.Errorf("looking for objects of the name: %w", err)
		}
		in := map[string]bool{}
		for _, object := range there {
			in[object.GetNamespace()] = true
		}
		asked = slices.DeleteFunc(asked, func(name string) bool {
			if !in[name] {
				s.Found[name] = nil
			}
			return !in[name]
		})
	}
	for _, name := range asked {
		object := distribution.New(s.kind())
		err := live.Get(ctx, types.NamespacedName{Namespace: name, Name: s.name()}, object.(client.Object))
		switch {
		case apierrors.IsNotFound(err):
			s.Found[name] = nil
		case err != nil:
			s.Failed[name] = err
		default:
			s.Found[name] = object
		}
	}
	return ctx.Err()
}
