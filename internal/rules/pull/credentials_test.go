package pull

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/registry"
)

// plainly seals nothing, so that what it was given can be read.
func plainly(_, text []byte, _ string) ([]byte, error) { return text, nil }

func dockerSecret(name, content string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(content)},
	}
}

// with returns what a job wants that has credentials of a user's name.
func with(t *testing.T, w Want, user string) Want {
	t.Helper()
	secret := dockerSecret(user, `{"auths":{"docker.io":{"username":"`+user+`"}}}`)
	var err error
	if w.Credentials, err = NewCredentials(string(w.Job.UID), w.Image, []*corev1.Secret{secret}); err != nil {
		t.Fatal(err)
	}
	w.Seal = plainly
	return w
}

// usersOf returns whose credentials a tag of nginx is pulled with.
func usersOf(t *testing.T, n *v1beta1.NodeImage, name string) string {
	t.Helper()
	var users []string
	for _, tag := range n.Spec.Images["nginx"].Tags {
		if tag.Tag != name {
			continue
		}
		for _, sealed := range tag.Credentials {
			var found []registry.Credentials
			if err := json.Unmarshal(sealed.Sealed, &found); err != nil {
				t.Fatal(err)
			}
			for _, c := range found {
				users = append(users, c.Username)
			}
		}
	}
	return strings.Join(users, " ")
}

// TestImagesArePulledWithTheCredentialsOfWhoWantsThem: neither another tag of the repository nor a later round of the same tag is pulled with
// the credentials of somebody else's job.
func TestImagesArePulledWithTheCredentialsOfWhoWantsThem(t *testing.T) {
	owner, other := newJob("owner", nil), newJob("other", nil)
	empty := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	asked := mustAsk(t, with(t, wants(owner, "nginx", "1"), "owner"), empty)
	done := answered(asked, "nginx", "1", v1beta1.ImagePhaseSucceeded)
	shared := mustAsk(t, with(t, wants(other, "nginx", "1"), "other"), asked)
	ownerGone, _ := CleanUp(shared, References{Owner: func(r corev1.ObjectReference) OwnerState {
		if r.Name == "owner" {
			return Gone
		}
		return Running
	}, SecretGone: none}, now)
	for name, tc := range map[string]struct {
		n    *v1beta1.NodeImage
		tag  string
		want string
	}{
		"the job that has them":                          {asked, "1", "owner"},
		"another tag of the repository":                  {mustAsk(t, wants(other, "nginx", "2"), asked), "2", ""},
		"the same tag, while the owner's pull goes on":   {mustAsk(t, wants(other, "nginx", "1"), asked), "1", "owner"},
		"the same tag, after the owner has got it":       {mustAsk(t, wants(other, "nginx", "1"), done), "1", ""},
		"both with their own":                            {shared, "1", "owner other"},
		"after the owner is gone":                        {ownerGone, "1", "other"},
		"after the owner wants another image":            {mustAsk(t, with(t, wants(owner, "nginx", "2"), "owner"), shared), "1", "other"},
		"the owner once more, with what it has by then":  {mustAsk(t, with(t, wants(owner, "nginx", "1"), "new"), done), "1", "new"},
		"the owner while it goes on, with what has come": {with(t, wants(owner, "nginx", "1"), "new").Reseal(asked), "1", "new"},
	} {
		if got := usersOf(t, tc.n, tc.tag); got != tc.want {
			t.Errorf("%s: pulled with %q, want %q", name, got, tc.want)
		}
	}
}

func TestCredentialsThatFitNoImageAreNotSealed(t *testing.T) {
	w := wants(newJob("job", nil), "nginx", "1")
	secret := dockerSecret("reg", `{"auths":{"other.io":{"username":"u"},"broken.io":{"auth":"hunter2!"}}}`)
	c, err := NewCredentials("job", w.Image, []*corev1.Secret{secret})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("what can't be read is said to be %v", err)
	}
	w.Credentials, w.Seal = c, plainly
	n := mustAsk(t, w, &v1beta1.NodeImage{})
	if got := n.Spec.Images["nginx"].Tags[0].Credentials; len(got) > 0 || w.StateOn(n).LacksKey {
		t.Errorf("sealed are %v", got)
	}
}

func TestSealForUsers(t *testing.T) {
	job := newJob("job", nil)
	n := mustAsk(t, wants(job, "nginx", "owned"), &v1beta1.NodeImage{})
	image := n.Spec.Images["nginx"]
	image.Tags = append(image.Tags, v1beta1.ImageTagSpec{Tag: "users"}, v1beta1.ImageTagSpec{Tag: "users-done"})
	image.PullSecrets = []v1beta1.ReferenceObject{{Namespace: "config", Name: "reg"}, {Namespace: "config", Name: "unreadable"}}
	n.Spec.Images["nginx"] = image
	n = answered(n, "nginx", "users-done", v1beta1.ImagePhaseSucceeded)
	find := func(r v1beta1.ReferenceObject) *corev1.Secret {
		if r.Name == "reg" {
			return dockerSecret("reg", `{"auths":{"docker.io":{"username":"u"}}}`)
		}
		return nil
	}
	sealed := SealForUsers(n, find, plainly)
	for tag, want := range map[string]string{"owned": "", "users": "u", "users-done": ""} {
		if got := usersOf(t, sealed, tag); got != want {
			t.Errorf("tag %s is pulled with %q, want %q", tag, got, want)
		}
	}
	if again := SealForUsers(sealed, find, plainly); again != nil {
		t.Error("it seals again what it has sealed")
	}
	sealed.Status.CredentialsKey = []byte("new")
	if again := SealForUsers(sealed, find, plainly); again == nil {
		t.Error("it does not seal for the new key of the daemon")
	}
}

func TestNeedsCopy(t *testing.T) {
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "config", Name: "reg-3fa9c1"}}
	n := mustAsk(t, wants(newJob("job", nil), "nginx", "1"), &v1beta1.NodeImage{})
	image := n.Spec.Images["nginx"]
	image.PullSecrets = []v1beta1.ReferenceObject{{Namespace: "config", Name: "reg-3fa9c1", Mode: v1beta1.ReferenceBatch}}
	n.Spec.Images["nginx"] = image
	upgraded := n.DeepCopy()
	upgraded.Status.CredentialsKey = []byte("key")
	for name, tc := range map[string]struct {
		n    *v1beta1.NodeImage
		want bool
	}{
		"a daemon without a key pulls with it": {n, true},
		"it has pulled":                        {answered(n, "nginx", "1", v1beta1.ImagePhaseSucceeded), false},
		"a daemon that reads no Secrets":       {upgraded, false},
		"a node that does not list it":         {&v1beta1.NodeImage{}, false},
	} {
		if got := NeedsCopy(tc.n, copied); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
