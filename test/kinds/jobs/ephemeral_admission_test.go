package jobs

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
)

// TestEphemeralJobAdmission: what nobody could carry out is refused, and what is left out is filled in.
func TestEphemeralJobAdmission(t *testing.T) {
	e := newEnv(t, 0)
	for name, tc := range map[string]struct{ object, want string }{
		"nothing to add": {
			strings.Replace(shell(), `[{name: shell, image: "busybox:1", targetContainerName: app}]`, "[]", 1),
			"there is nothing to add without a container",
		},
		"not a list": {
			strings.Replace(shell(), `[{name: shell, image: "busybox:1", targetContainerName: app}]`, "many", 1), "reading the object",
		},
		"every Pod": {
			strings.Replace(shell(), "{matchLabels: {app: web}}", "{}", 1),
			"an empty selector would add containers to every Pod of the namespace",
		},
		"a port": {
			strings.Replace(shell(), "targetContainerName: app", "ports: [{containerPort: 80}]", 1),
			"ports: Forbidden: an ephemeral container can't have it",
		},
		"a negative number": {shell("parallelism: -1"), "spec.parallelism"},
		"a variable without name": {
			strings.Replace(shell(), "targetContainerName: app", `env: [{name: "", value: x}]`, 1),
			"spec.template.ephemeralContainers[0].env[0].name: Required value",
		},
		"a policy that is none": {
			strings.Replace(shell(), "targetContainerName: app", "imagePullPolicy: Sometimes", 1),
			"spec.template.ephemeralContainers[0].imagePullPolicy: Unsupported value",
		},
	} {
		if got := e.refused(tc.object); !strings.Contains(got, tc.want) {
			t.Errorf("%s is refused with %q", name, got)
		}
	}
	e.create(shell())
	job := e.shellJob()
	if p, ttl := job.Spec.Parallelism, job.Spec.TTLSecondsAfterFinished; p == nil || *p != 1 || ttl == nil || *ttl != 1800 {
		t.Errorf("parallelism %v, ttlSecondsAfterFinished %v", p, ttl)
	}
	for _, patch := range []string{`{"selector":{"matchLabels":{"app":"db"}}}`, `{"template":{"ephemeralContainers":[{"name":"other","image":"x"}]}}`} {
		err := e.Client.Patch(e.Ctx, job.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":`+patch+`}`)))
		if err == nil || !strings.Contains(err.Error(), "is immutable: make another EphemeralJob") {
			t.Errorf("%s is answered with %v", patch, err)
		}
	}
}

// TestAuthors: who may not add containers to Pods can't have a job do it.
func TestAuthors(t *testing.T) {
	e := newEnv(t, 0)
	grant := func(name string, rule rbacv1.PolicyRule) {
		meta := metav1.ObjectMeta{Namespace: e.Namespace, Name: name}
		e.Must(e.Client.Create(e.Ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}))
		e.Must(e.Client.Create(e.Ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "author"}},
		}))
	}
	grant("jobs", rbacv1.PolicyRule{APIGroups: []string{"apps.kruise.io"}, Resources: []string{"ephemeraljobs"}, Verbs: []string{"*"}})
	config := rest.CopyConfig(e.Config)
	config.Impersonate.UserName = "author"
	author, err := client.New(config, client.Options{Scheme: e.Client.Scheme()})
	e.Must(err)
	job := func() *v1alpha1.EphemeralJob {
		return &v1alpha1.EphemeralJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "shell"},
			Spec: v1alpha1.EphemeralJobSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				Template: v1alpha1.EphemeralContainerTemplateSpec{EphemeralContainers: []corev1.EphemeralContainer{
					{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "shell", Image: "busybox:1"}},
				}},
			},
		}
	}
	const want = "author may not patch pods/ephemeralcontainers in namespace"
	e.Eventually("the author may write jobs, and may not get into Pods", func() error { // rights take a moment
		err := author.Create(e.Ctx, job())
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("the answer is %w", errors.Join(err, errors.New("not that")))
		}
		return nil
	})
	mine := job()
	mine.Spec.Paused = true
	e.Must(e.Client.Create(e.Ctx, mine))
	goOn := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":false}}`))
	if err := author.Patch(e.Ctx, mine.DeepCopy(), goOn); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("letting another's job go on is answered with %v", err)
	}
	if err := author.Patch(e.Ctx, mine.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))); err != nil {
		t.Errorf("a label is answered with %v", err)
	}
	grant(
		"containers", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers"}, Verbs: []string{"patch"}},
	)
	e.Eventually("the author may do both", func() error { return author.Patch(e.Ctx, mine.DeepCopy(), goOn) })
}
