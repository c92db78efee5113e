package uniteddeployment

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/members"
	memberrules "github.com/seed-69ecc383/kruise/internal/rules/member"
)

// onlyOne reads an API server that has one UnitedDeployment, or none.
type onlyOne struct {
	client.Reader
	set *v1beta1.UnitedDeployment
}

func (o onlyOne) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if o.set == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	o.set.DeepCopyInto(into.(*v1beta1.UnitedDeployment))
	return nil
}

// TestWhichWorkloadsAreWanted: what nobody wants is deleted, so that whatever is in doubt is wanted.
func TestWhichWorkloadsAreWanted(t *testing.T) {
	web := func(changes ...func(*v1beta1.UnitedDeployment)) *v1beta1.UnitedDeployment {
		set := &v1beta1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid"}}
		set.Spec.Topology.Subsets = []v1beta1.Subset{remoteSubset("b", "m1")}
		set.Status.MemberClusters = []v1beta1.MemberCluster{{Kind: "ClusterProfile", Namespace: "default", Name: "m1", ClusterID: "one"}}
		for _, change := range changes {
			change(set)
		}
		return set
	}
	fresh := func(set *v1beta1.UnitedDeployment) { set.Status.MemberClusters = nil }
	dropped := func(set *v1beta1.UnitedDeployment) { set.Spec.Topology.Subsets = nil }
	for name, tc := range map[string]struct {
		set *v1beta1.UnitedDeployment
		// in is the cluster that has the workload, and led are the names that lead there.
		in   string
		led  []string
		anon bool
		want bool
	}{
		"its owner is gone":                                                {in: "one", led: []string{"m1"}},
		"another has the name of its owner":                                {set: web(func(s *v1beta1.UnitedDeployment) { s.UID = "other" }), in: "one", led: []string{"m1"}},
		"a subset is there":                                                {set: web(), in: "one", led: []string{"m1"}, want: true},
		"another object leads to the same cluster, too":                    {set: web(), in: "one", led: []string{"m2"}, want: true},
		"its subset is gone, and its owner deletes it":                     {set: web(dropped), in: "one", led: []string{"m1"}, want: true},
		"its subset is gone, and so is the record":                         {set: web(dropped, fresh), in: "one", led: []string{"m1"}},
		"its owner has just been created, and nothing is recorded":         {set: web(fresh), in: "one", led: []string{"m1"}, want: true},
		"nothing is recorded, and the object of its owner leads elsewhere": {set: web(fresh), in: "one", led: []string{"m2"}},
		"its owner is in another cluster, whose object leads here now":     {set: web(), in: "two", led: []string{"m1"}},
		"somebody has removed the annotation that names its owner":         {in: "one", led: []string{"m1"}, anon: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := memberrules.Workload{Owner: "uid", OwnerName: types.NamespacedName{Namespace: "shop", Name: "web"}}
			if tc.anon {
				w.OwnerName = types.NamespacedName{}
			}
			in := members.Cluster{ID: tc.in}
			for _, name := range tc.led {
				in.Places = append(in.Places, placeNamed(name))
			}
			got, err := Wants(onlyOne{set: tc.set})(t.Context(), w, in)
			if err != nil || got != tc.want {
				t.Errorf("it is wanted: %t, %v", got, err)
			}
		})
	}
}
