package inplace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

// base is the template that the tests change.
func base() *corev1.PodTemplateSpec {
	app := container("app", "app:v1", fromField("CONF", "metadata.annotations['conf']"), corev1.EnvVar{Name: "MODE", Value: "a"})
	app.Resources = resources("100m", "64Mi")
	log := container("log", "log:v1", fromField("ZONE", "metadata.labels['zone']"), fromField("CONF", "metadata.annotations['conf']"))
	log.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	template := templateOf(app, log)
	template.Spec.InitContainers = []corev1.Container{container("init", "init:v1")}
	return template
}

func changed(edits ...func(*corev1.PodTemplateSpec)) *corev1.PodTemplateSpec {
	template := base()
	for _, edit := range edits {
		edit(template)
	}
	return template
}

func TestRefusals(t *testing.T) {
	cpu := func(list corev1.ResourceList, value string) { list[corev1.ResourceCPU] = resource.MustParse(value) }
	cases := map[string]struct {
		edit func(*corev1.PodTemplateSpec)
		o    Options
		want string
	}{
		"an environment variable": {
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Env[1].Value = "b" },
			want: "replace /spec/containers/0/env: " + onlyThese,
		},
		"a command": {
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.Containers[1].Command = []string{"run"} },
			want: "add /spec/containers/1/command: " + onlyThese,
		},
		"a probe that goes": {
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Env = nil },
			want: "remove /spec/containers/0/env: " + onlyThese,
		},
		"an init container's image": {
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.InitContainers[0].Image = "init:v2" },
			want: "replace /spec/initContainers: " + onlyThese,
		},
		"a volume": {
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.Volumes = []corev1.Volume{{Name: "data"}} },
			want: "add /spec/volumes: " + onlyThese,
		},
		"a container more": {
			edit: func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers = append(t.Spec.Containers, container("third", "third:v1"))
			},
			want: "replace /spec/containers: containers can't be added, removed, renamed or put in another order in place",
		},
		"a container more before one whose image changes": {
			edit: func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0].Image = "app:v2"
				t.Spec.Containers = append([]corev1.Container{container("third", "third:v1")}, t.Spec.Containers...)
			},
			want: "replace /spec/containers: containers can't be added, removed, renamed or put in another order in place",
		},
		"containers in another order": {
			edit: func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0], t.Spec.Containers[1] = t.Spec.Containers[1], t.Spec.Containers[0]
			},
			want: "replace /spec/containers: containers can't be added, removed, renamed or put in another order in place",
		},
		"an image that goes": {
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "" },
			want: "replace /spec/containers/0/image: an image can't be added or removed in place",
		},
		"cpu where resizing is not enabled": {
			edit: func(t *corev1.PodTemplateSpec) { cpu(t.Spec.Containers[1].Resources.Requests, "20m") },
			o:    Options{EnvFromMetadata: true},
			want: "replace /spec/containers/1/resources: " + onlyThese,
		},
		"a limit more": {
			edit: func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[1].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			},
			o:    everything(),
			want: "add /spec/containers/1/resources/limits/cpu: a request or limit can't be added in place",
		},
		"a request less": {
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.Containers[1].Resources.Requests = nil },
			o:    everything(),
			want: "remove /spec/containers/1/resources/requests/cpu: a request or limit can't be removed in place",
		},
		"a claim of a device": {
			edit: func(t *corev1.PodTemplateSpec) {
				cpu(t.Spec.Containers[1].Resources.Requests, "20m")
				t.Spec.Containers[1].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
			},
			o:    everything(),
			want: "replace /spec/containers/1/resources: " + onlyThese,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, refusal := DiffTemplates(base(), changed(tc.edit), tc.o)
			if refusal == nil {
				t.Fatalf("it goes in place: %s", got)
			}
			if diff := cmp.Diff(tc.want, refusal.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefusedResources(t *testing.T) {
	with := func(r corev1.ResourceRequirements) *corev1.PodTemplateSpec {
		app := container("app", "app:v1")
		app.Resources = r
		return templateOf(app)
	}
	list := func(pairs ...string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return out
	}
	burstable := corev1.ResourceRequirements{Requests: list("cpu", "1", "memory", "1Gi"), Limits: list("cpu", "2", "memory", "1Gi")}
	cases := map[string]struct {
		from, to corev1.ResourceRequirements
		want     string
	}{
		"Burstable to Guaranteed": {
			from: burstable, to: resources("2", "1Gi"),
			want: "replace /spec/containers: the QoS class would change from Burstable to Guaranteed",
		},
		"Guaranteed to Burstable": {
			from: resources("2", "1Gi"), to: burstable,
			want: "replace /spec/containers: the QoS class would change from Guaranteed to Burstable",
		},
		"a resource that is neither cpu nor memory": {
			from: corev1.ResourceRequirements{Requests: list("ephemeral-storage", "1Gi")},
			to:   corev1.ResourceRequirements{Requests: list("ephemeral-storage", "2Gi")},
			want: "replace /spec/containers/0/resources/requests/ephemeral-storage: only cpu and memory can be resized in place",
		},
		"a request of zero counts as none": {
			from: corev1.ResourceRequirements{Requests: list("cpu", "0")},
			to:   corev1.ResourceRequirements{Requests: list("cpu", "1")},
			want: "replace /spec/containers: the QoS class would change from BestEffort to Burstable",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, refusal := DiffTemplates(with(tc.from), with(tc.to), everything())
			if refusal == nil {
				t.Fatalf("it goes in place: %s", got)
			}
			if diff := cmp.Diff(tc.want, refusal.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// nothing is a change that changes nothing.
func nothing() Change {
	return Change{
		Images: map[string]string{}, OldImages: map[string]string{},
		Resources: map[string]corev1.ResourceRequirements{}, RefMetadata: map[string]metav1.ObjectMeta{},
		Labels: map[string]Value{}, Annotations: map[string]Value{},
	}
}

func TestChanges(t *testing.T) {
	value := func(s string) *string { return &s }
	cases := map[string]struct {
		edit     func(*corev1.PodTemplateSpec)
		o        Options
		want     func(*Change)
		wantText string
	}{
		"nothing": {
			edit: func(*corev1.PodTemplateSpec) {}, want: func(*Change) {},
			wantText: "nothing but the revision",
		},
		"an image": {
			edit: func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "app:v2" },
			want: func(c *Change) {
				c.Images["app"], c.OldImages["app"] = "app:v2", "app:v1"
			},
			wantText: "app app:v1 -> app:v2",
		},
		"what is written otherwise and means the same": {
			edit: func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("0.1")
				t.Spec.Containers[0].Ports = []corev1.ContainerPort{}
			},
			o:        everything(),
			want:     func(*Change) {},
			wantText: "nothing but the revision",
		},
		"labels, annotations and finalizers, added, changed and removed": {
			edit: func(t *corev1.PodTemplateSpec) {
				t.Labels = map[string]string{"app": "web2", "tier": "front"}
				t.Annotations = map[string]string{"note": "x"}
				t.Finalizers = []string{"example.io/hold"}
			},
			o: everything(),
			want: func(c *Change) {
				c.Labels = map[string]Value{"app": {value("web"), value("web2")}, "tier": {New: value("front")}}
				c.Annotations = map[string]Value{"note": {New: value("x")}}
				c.AddFinalizers = []string{"example.io/hold"}
			},
			wantText: "metadata",
		},
		"the first annotation there is, that containers take into their environment": {
			edit: func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"conf": "1"} },
			o:    everything(),
			want: func(c *Change) {
				c.Annotations = map[string]Value{"conf": {New: value("1")}}
				c.RefMetadata["app"] = metav1.ObjectMeta{Annotations: map[string]string{"conf": "1"}}
				c.RefMetadata["log"] = metav1.ObjectMeta{Annotations: map[string]string{"conf": "1"}}
			},
			wantText: "app environment from metadata, log environment from metadata",
		},
		"an annotation that containers take into their environment, where that restarts nothing": {
			edit: func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"conf": "1"} },
			want: func(c *Change) {
				c.Annotations = map[string]Value{"conf": {New: value("1")}}
			},
			wantText: "metadata",
		},
		"a label that a container takes into its environment, and another": {
			edit: func(t *corev1.PodTemplateSpec) { t.Labels["zone"], t.Labels["tier"] = "a", "front" },
			o:    everything(),
			want: func(c *Change) {
				c.Labels = map[string]Value{"zone": {New: value("a")}, "tier": {New: value("front")}}
				c.RefMetadata["log"] = metav1.ObjectMeta{Labels: map[string]string{"zone": "a"}}
			},
			wantText: "log environment from metadata, metadata",
		},
		"cpu of both containers": {
			edit: func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0].Resources = resources("200m", "64Mi")
				t.Spec.Containers[1].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("20m")
			},
			o: everything(),
			want: func(c *Change) {
				app := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
				c.Resources["app"] = corev1.ResourceRequirements{Limits: app, Requests: app}
				c.Resources["log"] = corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m")},
				}
			},
			wantText: "app resources, log resources",
		},
		"a limit whose request follows it": {
			edit: func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: resources("200m", "64Mi").Limits}
			},
			o: everything(),
			want: func(c *Change) {
				app := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
				c.Resources["app"] = corev1.ResourceRequirements{Limits: app, Requests: app}
			},
			wantText: "app resources",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, refusal := DiffTemplates(base(), changed(tc.edit), tc.o)
			if refusal != nil {
				t.Fatal(refusal)
			}
			want := nothing()
			tc.want(&want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.wantText, got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARemovedKeyRestartsNothing(t *testing.T) {
	was := changed(func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{"conf": "1"}
		t.Finalizers = []string{"example.io/f"}
	})
	got := change(t, was, base())
	if got.TouchesContainers() || got.Annotations["conf"].New != nil || *got.Annotations["conf"].Old != "1" {
		t.Errorf("the removal of an annotation became %+v", got)
	}
	if diff := cmp.Diff([]string{"example.io/f"}, got.RemoveFinalizers); diff != "" {
		t.Error(diff)
	}
}

func TestVersionsOfASidecarRestartNothing(t *testing.T) {
	was := templateOf(container("log", "log:v1", fromField("SIDECARSET_VERSION", "metadata.annotations['v']")))
	is := was.DeepCopy()
	is.Annotations = map[string]string{"v": "2"}
	if got := change(t, was, is); got.TouchesContainers() {
		t.Errorf("a sidecar's version restarts containers: %s", got)
	}
}

func TestClaimTemplates(t *testing.T) {
	rev := func(hash ...string) *appsv1.ControllerRevision {
		r, err := revision.New(revision.Owner{Name: "web", Namespace: "default"}, base(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hash {
			r.Annotations[keys.RevisionClaimTemplatesHash] = h
		}
		return r
	}
	refused := "replace /volumeClaimTemplates: a Pod keeps its claims when it is updated in place"
	cases := map[string]struct {
		from, to *appsv1.ControllerRevision
		o        Options
		want     string
	}{
		"the same claims":                                {rev("1"), rev("1"), Options{}, ""},
		"other claims":                                   {rev("1"), rev("2"), Options{}, refused},
		"other claims, which do not matter":              {rev("1"), rev("2"), Options{IgnoreClaims: true}, ""},
		"a revision from before claims were noted":       {rev(), rev("2"), Options{}, ""},
		"claims where there were none":                   {rev(""), rev("2"), Options{}, refused},
		"a revision that is followed by one without any": {rev("1"), rev(), Options{}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, refusal := Diff(tc.from, tc.to, tc.o)
			got := ""
			if refusal != nil {
				got = refusal.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	broken := rev("1")
	broken.Data.Raw = []byte("{")
	if _, refusal := Diff(broken, rev("1"), Options{}); refusal == nil || refusal.Op != "read" {
		t.Errorf("a broken revision gave the refusal %v", refusal)
	}
}

func TestQOSClassOfResourcesOfThePod(t *testing.T) {
	template := base()
	all := resources("1", "1Gi")
	template.Spec.Resources = &all
	if got := qosClass(&template.Spec); got != corev1.PodQOSGuaranteed {
		t.Errorf("a Pod with requests and limits of its own is %s, want Guaranteed whatever its containers have", got)
	}
	if got := qosClass(&corev1.PodSpec{Containers: []corev1.Container{container("app", "app:v1")}}); got != corev1.PodQOSBestEffort {
		t.Errorf("a Pod without resources is %s, want BestEffort", got)
	}
}
