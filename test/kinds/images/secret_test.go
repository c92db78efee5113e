package images

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

const configNamespace = "kruise-daemon-config"

// letSecretsBeRead binds the role that is shipped for it, in the namespace of the test.
func (e *env) letSecretsBeRead() {
	e.Helper()
	e.Must(e.Client.Create(e.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: metaOf(e.Namespace, "kruise-pull-secrets", nil),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kruise-pull-secrets-reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kruise-system", Name: "kruise-manager"}},
	}))
}

func credentials(namespace, name, text string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"mine": "yes"}},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(text)},
	}
}

// copies returns the copies of the Secrets of the test's namespace.
func (e *env) copies() []corev1.Secret {
	e.Helper()
	var all corev1.SecretList
	e.Must(e.Client.List(e.Ctx, &all, client.InNamespace(configNamespace)))
	var out []corev1.Secret
	for _, s := range all.Items {
		if strings.HasPrefix(s.Annotations[keys.PullSecretSource], e.Namespace+"/") {
			out = append(out, s)
		}
	}
	return out
}

func (e *env) noCopies() error {
	if copies := e.copies(); len(copies) > 0 {
		return fmt.Errorf("there is still %s for %s", copies[0].Name, copies[0].Annotations[keys.PullSecretReferences])
	}
	return nil
}

func TestSecretsAreCopiedForAsLongAsTheyAreNeeded(t *testing.T) {
	e := newEnv(t, 1)
	e.letSecretsBeRead()
	source := credentials(e.Namespace, "reg", `{"auths":{}}`)
	e.Must(e.Client.Create(e.Ctx, source))
	e.pull("one", "nginx:hang-pull", "pullSecrets: [reg]")
	e.pull("two", "redis:hang-pull", "pullSecrets: [reg]")
	both := fmt.Sprintf("%s/one,%s/two", e.Namespace, e.Namespace)
	var c corev1.Secret
	e.Eventually("there is one copy for both jobs", func() error {
		copies := e.copies()
		if len(copies) != 1 || copies[0].Annotations[keys.PullSecretReferences] != both {
			return fmt.Errorf("there are %v", copies)
		}
		c = copies[0]
		return nil
	})
	if c.Annotations[keys.PullSecretSource] != e.Namespace+"/reg" || len(c.Labels) > 0 || c.Type != source.Type || len(c.Name) != len("reg-123456") {
		t.Errorf("the copy is %+v", c)
	}
	want := []v1beta1.ReferenceObject{{Namespace: configNamespace, Name: c.Name, Mode: v1beta1.ReferenceBatch}}
	for _, repository := range []string{"nginx", "redis"} {
		e.Eventually("the node knows it", func() error {
			if diff := cmp.Diff(want, e.nodeImage(e.Nodes[0]).Spec.Images[repository].PullSecrets); diff != "" {
				return fmt.Errorf("for %s (-want +got):\n%s", repository, diff)
			}
			return nil
		})
	}
	source.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"a":{}}}`)
	e.Must(e.Client.Update(e.Ctx, source))
	e.Eventually("the copy follows", func() error {
		if copies := e.copies(); len(copies) != 1 || string(copies[0].Data[corev1.DockerConfigJsonKey]) != `{"auths":{"a":{}}}` {
			return fmt.Errorf("there are %v", copies)
		}
		return nil
	})
	e.Must(e.editJob("one", "{image: busybox:1}"))
	e.completed("one")
	e.Eventually("the copy is for the other job alone", func() error {
		if copies := e.copies(); len(copies) != 1 || copies[0].Annotations[keys.PullSecretReferences] != e.Namespace+"/two" {
			return fmt.Errorf("there are %v", copies)
		}
		return nil
	})
	if job := e.job("one"); len(job.Finalizers) > 0 {
		t.Errorf("the job has finalizers %v", job.Finalizers)
	}
	e.deleteJob("two")
	e.Eventually("the copy is gone", e.noCopies)
}

func TestSecretThatComesLate(t *testing.T) {
	e := newEnv(t, 2)
	e.pull("job", "nginx:hang-pull", "pullSecrets: [reg]", "parallelism: 2")
	e.Eventually("the job says what it may not do", func() error {
		if status := e.job("job").Status; status.Active != 2 || !strings.Contains(status.Message, "may not read Secret reg of namespace "+e.Namespace) {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	})
	e.letSecretsBeRead()
	e.Eventually("the job says what is missing", func() error {
		if status := e.job("job").Status; !strings.HasSuffix(status.Message, "; there is no Secret reg") {
			return fmt.Errorf("status is %+v", status)
		}
		return nil
	})
	e.Must(e.Client.Create(e.Ctx, credentials(e.Namespace, "reg", `{}`)))
	for _, node := range e.Nodes {
		e.Eventually("node "+node+" knows the copy", func() error {
			if got := e.nodeImage(node).Spec.Images["nginx"].PullSecrets; len(got) != 1 {
				return fmt.Errorf("it knows %v", got)
			}
			return nil
		})
	}
	if tag := e.tags(e.Nodes[0], "nginx")["hang-pull"]; tag.Version != 0 {
		t.Errorf("the round was started anew: %+v", tag)
	}
	if status := e.job("job").Status; status.Active != 2 {
		t.Errorf("status is %+v", status)
	}
	e.deleteJob("job")
	e.Eventually("the copy is gone", e.noCopies)
}

func TestSecretsOfTheNamespaceThatDaemonsReadAreNotCopied(t *testing.T) {
	e := newEnv(t, 1)
	name := "direct-" + e.Namespace
	secret := credentials(configNamespace, name, `{}`)
	e.Must(e.Client.Create(e.Ctx, secret))
	test := e.Namespace
	e.Namespace, e.Env = configNamespace, e.In(configNamespace)
	e.Must(e.create("ImagePullJob", name, fmt.Sprintf("image: nginx:direct\npullSecrets: [%s]\nselector: {matchLabels: {%s: %s}}", name, pool, test)))
	if status := e.completed(name).Status; status.Succeeded != 1 {
		t.Errorf("status is %+v", status)
	}
	want := []v1beta1.ReferenceObject{{Namespace: configNamespace, Name: name}}
	if diff := cmp.Diff(want, e.nodeImage(e.Nodes[0]).Spec.Images["nginx"].PullSecrets); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if copies := e.copies(); len(copies) > 0 {
		t.Errorf("it was copied: %v", copies)
	}
	e.deleteJob(name)
	if err := e.Client.Delete(e.Ctx, secret); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}
