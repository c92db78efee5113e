package images

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// as returns a client of a user with a ClusterRole in the namespace of the test.
func (e *env) as(user, role string) client.Client {
	e.Helper()
	e.Must(e.Client.Create(e.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metaOf(e.Namespace, user, nil),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
	}))
	config := rest.CopyConfig(e.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	s, err := cluster.Scheme()
	e.Must(err)
	c, err := client.New(config, client.Options{Scheme: s})
	e.Must(err)
	return c
}

// TestWhoMayHaveNodesPull: not all who may edit a namespace, for the disks of nodes are everybody's.
func TestWhoMayHaveNodesPull(t *testing.T) {
	e := newEnv(t, 0)
	bound := metav1.ObjectMeta{Namespace: e.Namespace}
	newJob := func(kind, name string) client.Object {
		meta := *bound.DeepCopy()
		meta.Name = name
		template := v1beta1.ImagePullJobTemplate{Selector: &v1beta1.ImagePullJobNodeSelector{Names: []string{"no-such-node"}}}
		switch kind {
		case "ImagePullJob":
			return &v1beta1.ImagePullJob{ObjectMeta: meta, Spec: v1beta1.ImagePullJobSpec{Image: "nginx:1", ImagePullJobTemplate: template}}
		case "ImageListPullJob":
			return &v1beta1.ImageListPullJob{ObjectMeta: meta, Spec: v1beta1.ImageListPullJobSpec{Images: []string{"nginx:1"}, ImagePullJobTemplate: template}}
		default:
			list := &v1beta1.ImageListPullJobTemplateSpec{Spec: v1beta1.ImageListPullJobSpec{Images: []string{"nginx:1"}, ImagePullJobTemplate: template}}
			job := &v1beta1.AdvancedCronJob{ObjectMeta: meta}
			job.Spec.Schedule, job.Spec.ConcurrencyPolicy, job.Spec.Template.ImageListPullJobTemplate = "0 0 1 1 *", "Forbid", list
			return job
		}
	}
	editor, puller := e.as("editor", "edit"), e.as("puller", "kruise-image-pull-job-editor")
	e.Must(e.Client.Create(e.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metaOf(e.Namespace, "puller-edits", nil),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "puller"}},
	}))
	e.Eventually("roles of a namespace have Kruise's kinds", func() error { return puller.Create(e.Ctx, newJob("AdvancedCronJob", "first")) })
	for kind, refused := range map[string]string{
		"ImagePullJob": "cannot create resource", "ImageListPullJob": "cannot create resource",
		"AdvancedCronJob": "editor may not create imagelistpulljobs in namespace " + e.Namespace,
	} {
		if err := editor.Create(e.Ctx, newJob(kind, "editors")); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refused) {
			t.Errorf("%s by who may edit the namespace: %v, want %q", kind, err, refused)
		}
		if err := puller.Create(e.Ctx, newJob(kind, "pullers")); err != nil {
			t.Errorf("%s by who is bound to the role: %v", kind, err)
		}
	}
}
