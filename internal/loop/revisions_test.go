package loop

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
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
			got, err := r.RevisionsWith(t.Context(), "default", labels.Nothing(), types.UID("u"), tc.named)
			if err != nil || len(got) != tc.want || server.lists != tc.live {
				t.Errorf("%d revisions (%v), %d reads of the API server; want %d, %d", len(got), err, server.lists, tc.want, tc.live)
			}
		})
	}
}
