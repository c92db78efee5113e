package images

import (
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
	"github.com/seed-69ecc383/kruise/internal/rules/registry"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
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

// usersOf returns whose credentials a node is given for a tag, by the UID of the job: the daemons of simulated nodes have a key that is known.
func (e *env) usersOf(node, repository, name string) map[string]string {
	e.Helper()
	key, err := hpke.DHKEM(ecdh.X25519()).DeriveKeyPair([]byte("the key of the daemons of simulated nodes"))
	e.Must(err)
	out := map[string]string{}
	for _, sealed := range e.tags(node, repository)[name].Credentials {
		context := pull.SealContext(node, pull.Reference{Repository: repository, Tag: name}, sealed.Owner)
		text, err := hpke.Open(key, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(context), sealed.Sealed)
		e.Must(err)
		var found []registry.Credentials
		e.Must(json.Unmarshal(text, &found))
		for _, c := range found {
			out[sealed.Owner] += c.Username
		}
	}
	return out
}

func (e *env) eventuallyUses(repository, tag string, want map[string]string) {
	e.Helper()
	e.Eventually("the node is given the credentials for "+repository, func() error {
		if diff := cmp.Diff(want, e.usersOf(e.Nodes[0], repository, tag)); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

// loginTo is a Docker configuration.
func loginTo(host, user string) string {
	return fmt.Sprintf(`{"auths":{%q:{"username":%q,"password":"p"},"other.example":{"username":"foreign"}}}`, host, user)
}

// TestCredentialsAreSealedForTheNodesThatNeedThem: those that fit the image, for each job apart, and nothing of it can be read by others.
func TestCredentialsAreSealedForTheNodesThatNeedThem(t *testing.T) {
	e := newEnv(t, 1)
	e.letSecretsBeRead()
	source := credentials(e.Namespace, "reg", loginTo("docker.io", "one"))
	e.Must(e.Client.Create(e.Ctx, source))
	e.pull("one", "nginx:hang-pull", "pullSecrets: [reg]")
	e.pull("two", "redis:hang-pull", "pullSecrets: [reg]")
	e.pull("none", "nginx:hang-pull-too")
	one, two := string(e.job("one").UID), string(e.job("two").UID)
	e.eventuallyUses("nginx", "hang-pull", map[string]string{one: "one"})
	e.eventuallyUses("redis", "hang-pull", map[string]string{two: "one"})
	e.Eventually("the third job pulls", func() error {
		if len(e.tags(e.Nodes[0], "nginx")) != 2 {
			return errors.New("it does not")
		}
		return nil
	})
	e.eventuallyUses("nginx", "hang-pull-too", map[string]string{})
	text, err := json.Marshal(e.nodeImage(e.Nodes[0]))
	e.Must(err)
	var secrets corev1.SecretList
	e.Must(e.Client.List(e.Ctx, &secrets, client.InNamespace(configNamespace)))
	if strings.Contains(string(text), base64.StdEncoding.EncodeToString([]byte("one"))) || len(secrets.Items) > 0 && secrets.Items[0].Name == "reg" {
		t.Errorf("others can read %s, %v", text, secrets.Items)
	}
	scene.Edit(e.Env, "reg", source, func(s *corev1.Secret) {
		s.Data[corev1.DockerConfigJsonKey] = []byte(loginTo("docker.io", "changed"))
	})
	e.eventuallyUses("nginx", "hang-pull", map[string]string{one: "changed"})
	e.Must(e.editJob("one", "{image: busybox:1}"))
	if job := e.completed("one"); len(job.Finalizers) > 0 {
		t.Errorf("the job has finalizers %v", job.Finalizers)
	}
	e.eventuallyUses("nginx", "hang-pull", map[string]string{})
	e.deleteJob("two")
	e.eventuallyUses("redis", "hang-pull", map[string]string{})
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
	e.Must(e.Client.Create(e.Ctx, credentials(e.Namespace, "reg", loginTo("docker.io", "late"))))
	for _, node := range e.Nodes {
		e.Eventually("node "+node+" is given the credentials", func() error {
			if got := e.usersOf(node, "nginx", "hang-pull"); len(got) != 1 {
				return fmt.Errorf("it has %v", got)
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
}

// TestSecretsThatUsersNameInNodeImages: those of one namespace are used, and of no other.
func TestSecretsThatUsersNameInNodeImages(t *testing.T) {
	e := newEnv(t, 1)
	e.letSecretsBeRead()
	secret := credentials(configNamespace, "direct-"+e.Namespace, loginTo("docker.io", "direct"))
	e.Must(e.Client.Create(e.Ctx, secret))
	e.Must(e.Client.Create(e.Ctx, credentials(e.Namespace, "mine", loginTo("docker.io", "mine"))))
	e.Must(e.Client.Patch(e.Ctx, e.nodeImage(e.Nodes[0]), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"images":{"nginx":{
		"pullSecrets":[{"namespace":%q,"name":%q},{"namespace":%q,"name":"mine"}],
		"tags":[{"tag":"hang-pull","pullPolicy":{"ttlSecondsAfterFinished":600}}]}}}}`, configNamespace, secret.Name, e.Namespace))))
	e.eventuallyUses("nginx", "hang-pull", map[string]string{"": "direct"})
	e.Must(e.Client.Delete(e.Ctx, secret))
	e.eventuallyUses("nginx", "hang-pull", map[string]string{})
}

// TestCopiesOfAnEarlierVersionAreDeleted: its daemons could read them.
func TestCopiesOfAnEarlierVersionAreDeleted(t *testing.T) {
	e := newEnv(t, 0)
	leftover, own := credentials(configNamespace, "reg-3fa9c1", "{}"), credentials(configNamespace, "own-"+e.Namespace, "{}")
	leftover.Annotations = map[string]string{keys.PullSecretSource: e.Namespace + "/reg", keys.PullSecretReferences: e.Namespace + "/job"}
	e.Must(e.Client.Create(e.Ctx, own))
	e.Must(e.Client.Create(e.Ctx, leftover))
	e.Eventually("the copy is gone", func() error {
		if err := e.Client.Get(e.Ctx, client.ObjectKeyFromObject(leftover), leftover); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %w", err)
		}
		return nil
	})
	e.Must(e.Client.Delete(e.Ctx, own))
}
