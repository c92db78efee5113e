package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scaleServer answers for the scale of one object, and counts the questions.
type scaleServer struct {
	client.SubResourceClient
	replicas int32
	err      error
	asked    int
	// resources are what its group serves.
	resources []string
}

func (s *scaleServer) SubResource(string) client.SubResourceClient { return s }

func (s *scaleServer) Get(_ context.Context, _, into client.Object, _ ...client.SubResourceGetOption) error {
	s.asked++
	if s.err != nil {
		return s.err
	}
	scale := autoscalingv1.Scale{
		Spec:   autoscalingv1.ScaleSpec{Replicas: s.replicas},
		Status: autoscalingv1.ScaleStatus{Selector: "app=web"},
	}
	scale.UID = "1"
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&scale)
	into.(*unstructured.Unstructured).Object = content
	return err
}

func (s *scaleServer) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	if s.resources == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	list := &metav1.APIResourceList{}
	for _, name := range s.resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: "Game"})
	}
	return list, nil
}

var game = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Game"}

// TestAScaleTTLForAWhile: it is read again only once it has stood for ScaleTTL, and at once by those who have to know it now, whose reading
// stands for the others, too.
func TestAScaleTTLForAWhile(t *testing.T) {
	server := &scaleServer{replicas: 3}
	now := time.Unix(0, 0)
	scales := NewScales(server, server, func() time.Time { return now })
	check := func(s *Scales, replicas int32, asked int) {
		t.Helper()
		w, err := s.Get(t.Context(), "ns", game, "web")
		if err != nil || w == nil || w.Replicas == nil || *w.Replicas != replicas || server.asked != asked {
			t.Errorf("got %+v (%v) after %d questions, want %d replicas after %d", w, err, server.asked, replicas, asked)
		}
	}
	check(scales, 3, 1)
	server.replicas = 5
	now = now.Add(ScaleTTL - 1)
	check(scales, 3, 1)
	check(scales.Anew(), 5, 2)
	check(scales.Anew(), 5, 3)
	check(scales, 5, 3)
	server.replicas = 7
	now = now.Add(ScaleTTL)
	check(scales, 7, 4)
	if w, err := scales.Get(t.Context(), "other", game, "web"); err != nil || *w.Replicas != 7 || server.asked != 5 {
		t.Errorf("of another namespace's object: got %+v (%v) after %d questions", w, err, server.asked)
	}
}

// TestAnswersAboutAScale tells an object that is gone from one that no scale tells of, and both from a question that failed, which is asked again.
func TestAnswersAboutAScale(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Group: game.Group, Resource: "games"}, "web")
	for name, tc := range map[string]struct {
		err       error
		resources []string
		want      string
	}{
		"it is not there":             {notFound, []string{"games", "games/scale"}, "none, read once"},
		"its kind has no scale":       {notFound, []string{"games", "games/status"}, "silent, read once"},
		"its group is served no more": {notFound, nil, "silent, read once"},
		"its kind is not known":       {&meta.NoKindMatchError{GroupKind: game.GroupKind()}, nil, "silent, read once"},
		"it may not be read":          {apierrors.NewForbidden(schema.GroupResource{}, "web", errors.New("no")), nil, "silent, read once"},
		"the API server is busy":      {apierrors.NewTooManyRequestsError("busy"), nil, "error, read twice"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &scaleServer{err: tc.err, resources: tc.resources}
			scales := NewScales(server, server, func() time.Time { return time.Unix(0, 0) })
			var told []string
			for range 2 {
				w, err := scales.Get(t.Context(), corev1.NamespaceDefault, game, "web")
				switch {
				case err != nil:
					told = append(told, "error")
				case w == nil:
					told = append(told, "none")
				case w.Replicas == nil && w.Polled:
					told = append(told, "silent")
				default:
					t.Fatalf("got %+v", w)
				}
			}
			times := map[int]string{1: "once", 2: "twice"}[server.asked]
			if got := fmt.Sprintf("%s, read %s", told[0], times); got != tc.want || len(slices.Compact(told)) != 1 {
				t.Errorf("it is %q, want %q", got, tc.want)
			}
		})
	}
}
