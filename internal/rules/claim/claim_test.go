package claim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/build"
)

func claims(builders ...*build.ClaimBuilder) []*corev1.PersistentVolumeClaim {
	var out []*corev1.PersistentVolumeClaim
	for _, b := range builders {
		out = append(out, b.Obj())
	}
	return out
}

func names(claims []*corev1.PersistentVolumeClaim) []string {
	var out []string
	for _, c := range claims {
		out = append(out, c.Name)
	}
	return out
}

func TestInstanceID(t *testing.T) {
	cases := map[string]struct {
		pod  *build.PodBuilder
		want string
	}{
		"by the label":                             {build.Pod("anything").Instance("bcdfg"), "bcdfg"},
		"the label before the name":                {build.Pod("web-x2x4z").Instance("bcdfg"), "bcdfg"},
		"by the name, where the label was removed": {build.Pod("web-x2x4z"), "x2x4z"},
		"by the name, where the label is empty":    {build.Pod("web-x2x4z").Instance(""), "x2x4z"},
		"of a Pod of another workload":             {build.Pod("shop-x2x4z"), ""},
		"of a Pod of a longer name":                {build.Pod("web-api-x2x4z"), ""},
		"of a Pod named like the workload":         {build.Pod("web"), ""},
		"of a Pod whose name ends too early":       {build.Pod("web-"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := InstanceID(tc.pod.Obj(), "web"); got != tc.want {
				t.Errorf("id is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOf(t *testing.T) {
	stray := build.Claim("data", "none1").Obj()
	delete(stray.Labels, keys.InstanceID)
	all := append(claims(build.Claim("data", "aaaaa"), build.Claim("log", "aaaaa"), build.Claim("data", "bbbbb")), stray)
	for name, tc := range map[string]struct {
		id   string
		want []string
	}{
		"all claims of an id":                        {"aaaaa", []string{"data-web-aaaaa", "log-web-aaaaa"}},
		"an id without claims":                       {"ccccc", nil},
		"no id has no claims, not those without one": {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, names(Of(tc.id, all))); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReusable(t *testing.T) {
	stray := build.Claim("data", "none1").Obj()
	delete(stray.Labels, keys.InstanceID)
	cases := map[string]struct {
		claims []*corev1.PersistentVolumeClaim
		used   []string
		want   []string
	}{
		"ids that no Pod uses, sorted": {
			claims(build.Claim("data", "ccccc"), build.Claim("data", "aaaaa"), build.Claim("data", "bbbbb")), []string{"bbbbb"}, []string{"aaaaa", "ccccc"},
		},
		"an id once, however many claims it has": {claims(build.Claim("data", "aaaaa"), build.Claim("log", "aaaaa")), nil, []string{"aaaaa"}},
		"not one whose claim is being deleted":   {claims(build.Claim("data", "aaaaa").Deleting()), nil, []string{}},
		"not one of whose claims some are being deleted": {
			claims(build.Claim("data", "aaaaa"), build.Claim("log", "aaaaa").Deleting()), nil, []string{},
		},
		"not the claims without an id": {[]*corev1.PersistentVolumeClaim{stray}, nil, []string{}},
		"no claims":                    {nil, nil, []string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Reusable(tc.claims, sets.New(tc.used...))
			if !slices.Equal(tc.want, got) {
				t.Errorf("ids are %v, want %v", got, tc.want)
			}
		})
	}
}

func TestForPod(t *testing.T) {
	yes := true
	owner := Owner{
		Name: "web", Namespace: "shop", SelectorMatchLabels: map[string]string{"app": "web"},
		Reference: metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web", UID: "uid-web", Controller: &yes},
	}
	data := build.ClaimTemplate("data", "1Gi")
	data.Labels = map[string]string{"tier": "fast", "app": "other", keys.InstanceID: "mine"}
	data.Annotations = map[string]string{"note": "x"}
	data.Finalizers, data.UID, data.ResourceVersion = []string{"example.io/pasted"}, "pasted", "7"
	data.Status.Phase = corev1.ClaimBound
	log := build.ClaimTemplate("log", "2Gi")
	templates := []corev1.PersistentVolumeClaim{data, log}
	before := []corev1.PersistentVolumeClaim{*data.DeepCopy(), *log.DeepCopy()}

	want := []*corev1.PersistentVolumeClaim{
		{
			ObjectMeta: metav1.ObjectMeta{
				Name: "data-web-bcdfg", Namespace: "shop", Annotations: map[string]string{"note": "x"},
				Labels:          map[string]string{"tier": "fast", "app": "web", keys.InstanceID: "bcdfg"},
				OwnerReferences: []metav1.OwnerReference{owner.Reference},
			},
			Spec: data.Spec,
		},
		{
			ObjectMeta: metav1.ObjectMeta{
				Name: "log-web-bcdfg", Namespace: "shop",
				Labels:          map[string]string{"app": "web", keys.InstanceID: "bcdfg"},
				OwnerReferences: []metav1.OwnerReference{owner.Reference},
			},
			Spec: log.Spec,
		},
	}
	if diff := cmp.Diff(want, ForPod(owner, "bcdfg", templates)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, templates); diff != "" {
		t.Errorf("templates have changed (-before +after):\n%s", diff)
	}
	if got := ForPod(owner, "bcdfg", nil); len(got) > 0 {
		t.Errorf("without templates there are claims: %v", names(got))
	}
}

func TestMount(t *testing.T) {
	empty := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	}
	of := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name + "-web-bcdfg"},
		}}
	}
	templates := []corev1.PersistentVolumeClaim{build.ClaimTemplate("log", "1Gi"), build.ClaimTemplate("data", "1Gi")}
	cases := map[string]struct {
		volumes, want []corev1.Volume
	}{
		"missing volumes are added in the order of templates": {nil, []corev1.Volume{of("log"), of("data")}},
		"a volume of that name is replaced where it is":       {[]corev1.Volume{empty("data"), empty("tmp")}, []corev1.Volume{of("data"), empty("tmp"), of("log")}},
		"other volumes stay":                                  {[]corev1.Volume{empty("tmp")}, []corev1.Volume{empty("tmp"), of("log"), of("data")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := build.Pod("web-bcdfg").Obj()
			p.Spec.Volumes = tc.volumes
			Mount(p, "web", "bcdfg", templates)
			if diff := cmp.Diff(tc.want, p.Spec.Volumes); diff != "" {
				t.Errorf("volumes (-want +got):\n%s", diff)
			}
			Mount(p, "web", "bcdfg", templates)
			if diff := cmp.Diff(tc.want, p.Spec.Volumes); diff != "" {
				t.Errorf("volumes after mounting once more (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrphans(t *testing.T) {
	active := build.Pod("web-aaaaa").Instance("aaaaa").Ready(build.Start()).Obj()
	leaving := build.Pod("web-bbbbb").Instance("bbbbb").Deleting().Obj()
	unlabelled := build.Pod("web-ccccc").Ready(build.Start()).Obj()
	stray := build.Claim("data", "none1").Obj()
	delete(stray.Labels, keys.InstanceID)
	cases := map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  string
	}{
		"of an active Pod: stays":                          {build.Claim("data", "aaaaa").Obj(), ""},
		"of an active Pod whose label was removed: stays":  {build.Claim("data", "ccccc").Obj(), ""},
		"of a Pod that is gone: deleted":                   {build.Claim("data", "ddddd").Obj(), "delete data-web-ddddd"},
		"of a Pod that leaves: goes along with it":         {build.Claim("data", "bbbbb").Obj(), "data-web-bbbbb to web-bbbbb"},
		"of a Pod that leaves, and its own already: stays": {build.Claim("data", "bbbbb").OwnedBy(leaving).Obj(), ""},
		"of a Pod that left before one of the same name": {
			build.Claim("data", "bbbbb").OwnedBy(build.Pod("older").Obj()).Obj(), "data-web-bbbbb to web-bbbbb",
		},
		"being deleted: nothing left to do": {build.Claim("data", "ddddd").Deleting().Obj(), ""},
		"without an id: not ours to delete": {stray, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			moves := Orphans([]*corev1.PersistentVolumeClaim{tc.claim}, []*corev1.Pod{active, unlabelled}, []*corev1.Pod{leaving}, "web")
			var got []string
			for _, c := range moves.Delete {
				got = append(got, "delete "+c.Name)
			}
			for _, pair := range moves.ToPod {
				got = append(got, pair.Claim.Name+" to "+pair.Pod.Name)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPodWithoutIDKeepsNobodysClaims(t *testing.T) {
	adopted := build.Pod("old-6f7d9c-x2x4z").Ready(build.Start()).Obj()
	moves := Orphans(claims(build.Claim("data", "ddddd")), []*corev1.Pod{adopted}, []*corev1.Pod{build.Pod("other").Deleting().Obj()}, "web")
	if diff := cmp.Diff([]string{"data-web-ddddd"}, names(moves.Delete)); diff != "" {
		t.Errorf("claims to delete (-want +got):\n%s", diff)
	}
}

func TestEncodedTemplatesAreReadBack(t *testing.T) {
	for _, count := range []int{0, 1, 3} {
		t.Run(fmt.Sprintf("%d templates", count), func(t *testing.T) {
			var templates []corev1.PersistentVolumeClaim
			for i := range count {
				template := build.ClaimTemplate(fmt.Sprintf("data-%d", i), "1Gi")
				template.Labels = map[string]string{"tier": "<fast>"}
				templates = append(templates, template)
			}
			text, err := EncodeTemplates(templates)
			if err != nil {
				t.Fatal(err)
			}
			got, err := DecodeTemplates(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(templates, got); diff != "" {
				t.Errorf("templates (-in +out):\n%s", diff)
			}
			if TemplatesHash(templates) != TemplatesHash(got) {
				t.Error("the hash has changed on the way")
			}
		})
	}
	for _, text := range []string{"", "{", `{"a":1}`, `[{"spec":7}]`} {
		if got, err := DecodeTemplates(text); err == nil || !strings.Contains(err.Error(), "claim templates") {
			t.Errorf("%q gives %v and the error %v", text, got, err)
		}
	}
}
