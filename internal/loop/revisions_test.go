package loop

import (
	"context"
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/observe"
)

// listing has revisions of the owner "u", and counts how often they are listed.
type listing struct {
	client.Reader
	names []string
	lists int
	// foreign is a revision that others control, by name.
	foreign map[string]*appsv1.ControllerRevision
}

func (l *listing) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if key.Name == "" {
		return errors.New("resource name may not be empty") // as the API server's client says
	}
	rev, has := l.foreign[key.Name]
	if !has {
		return apierrors.NewNotFound(appsv1.Resource("controllerrevisions"), key.Name)
	}
	rev.DeepCopyInto(object.(*appsv1.ControllerRevision))
	return nil
}

func (l *listing) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.lists++
	for _, name := range l.names {
		rev := appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
			Name: name, OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: ptr.To(true)}},
		}}
		list.(*appsv1.ControllerRevisionList).Items = append(list.(*appsv1.ControllerRevisionList).Items, rev)
	}
	return nil
}

// TestARevisionThatAStatusNamesIsFound although the cache of revisions is older than the owner; else the API server is not asked.
func TestARevisionThatAStatusNamesIsFound(t *testing.T) {
	owner := metav1.ObjectMeta{Namespace: "default", UID: "u"}
	for name, tc := range map[string]struct {
		cached []string
		named  string
		live   int
		want   int
	}{
		"the cache has it":      {[]string{"web-1"}, "web-1", 0, 1},
		"the cache lacks it":    {nil, "web-1", 1, 2},
		"the status names none": {nil, "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := &listing{names: []string{"web-1", "web-2"}}
			r := Reads{Reader: observe.Reader{Reader: &listing{names: tc.cached}}, Tracked: server}
			got, err := r.RevisionsWith(t.Context(), &owner, labels.Nothing(), tc.named)
			if err != nil || len(got) != tc.want || server.lists != tc.live {
				t.Errorf("%d revisions (%v), %d reads of the API server; want %d, %d", len(got), err, server.lists, tc.want, tc.live)
			}
		})
	}
}

// TestARevisionOfOthersIsFoundByItsName if a Pod is at it that is to be adopted, and no other one is.
func TestARevisionOfOthersIsFoundByItsName(t *testing.T) {
	owner := metav1.ObjectMeta{Namespace: "default", UID: "u"}
	made := func(name, app string, owner types.UID) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"app": app}, OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}},
		}}
	}
	cache := &listing{foreign: map[string]*appsv1.ControllerRevision{
		"web-1": made("web-1", "web", "v"), "web-2": made("web-2", "web", "v"), "web-3": made("web-3", "db", "v"),
	}}
	r := Reads{Reader: observe.Reader{Reader: cache}}
	at := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: name}}}
	}
	selector := labels.SelectorFromSet(labels.Set{"app": "web"})
	for _, tc := range []struct {
		orphans []*corev1.Pod
		want    []string
	}{{nil, nil}, {[]*corev1.Pod{at("web-2"), at("web-2"), at("web-3"), at("web-4"), at("")}, []string{"web-2"}}} {
		found, err := r.RevisionsWith(t.Context(), &owner, selector, "", tc.orphans...)
		var got []string
		for _, rev := range found {
			got = append(got, rev.Name)
		}
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("got %v, %v; want %v", got, err, tc.want)
		}
	}
}
