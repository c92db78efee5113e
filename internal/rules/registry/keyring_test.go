package registry

import (
	"strings"
	"testing"

	"github.com/distribution/reference"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func secret(content string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "reg"},
		Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(content)},
	}
}

func named(t *testing.T, repository string) reference.Named {
	t.Helper()
	image, err := reference.ParseNormalizedNamed(repository)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestFor(t *testing.T) {
	cases := map[string]struct {
		entry, repository string
		want              bool
	}{
		"a bare host":                                    {"registry.io", "registry.io/a/b", true},
		"another host":                                   {"registry.io", "other.io/a/b", false},
		"a host with scheme":                             {"https://registry.io", "registry.io/a", true},
		"a host with the version of an API":              {"https://registry.io/v2/", "registry.io/a", true},
		"the same port":                                  {"registry.io:5000", "registry.io:5000/a", true},
		"another port":                                   {"registry.io", "registry.io:5000/a", false},
		"a wildcard for one part":                        {"*.registry.io", "eu.registry.io/a", true},
		"a wildcard does not reach over a dot":           {"*.io", "eu.registry.io/a", false},
		"a wildcard within a part":                       {"eu-*.registry.io", "eu-1.registry.io/a", true},
		"the beginning of the path":                      {"registry.io/team", "registry.io/team/app", true},
		"another path":                                   {"registry.io/team", "registry.io/other/app", false},
		"Docker Hub as its own tool writes it":           {"https://index.docker.io/v1/", "nginx", true},
		"Docker Hub by its name":                         {"docker.io", "docker.io/library/nginx", true},
		"an image of a user there":                       {"index.docker.io", "someone/app", true},
		"Docker Hub's credentials stay with Docker Hub":  {"https://index.docker.io/v1/", "registry.io/nginx", false},
		"a registry's credentials are not Docker Hub's":  {"registry.io", "nginx", false},
		"a wildcard that no host matches is no obstacle": {"[.io", "registry.io/a", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ring, err := Parse(secret(`{"auths":{"` + tc.entry + `":{"username":"u","password":"p"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			got := ring.For(named(t, tc.repository))
			if len(got) == 1 != tc.want {
				t.Errorf("For(%s) = %v, want a match: %t", tc.repository, got, tc.want)
			}
		})
	}
}

func TestTheMostSpecificComesFirst(t *testing.T) {
	ring, err := Parse(secret(`{"auths":{
		"registry.io":{"username":"all","password":"p"}, "registry.io/team/app":{"username":"app","password":"p"},
		"registry.io/team":{"username":"team","password":"p"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range ring.For(named(t, "registry.io/team/app")) {
		got = append(got, c.Username)
	}
	if diff := cmp.Diff([]string{"app", "team", "all"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		secret  *corev1.Secret
		want    string // user:password|identity|registry
		problem string
	}{
		"user and password": {secret(`{"auths":{"r.io":{"username":"u","password":"p"}}}`), "u:p||", ""},
		"both in base 64":   {secret(`{"auths":{"r.io":{"auth":"dTpwOnE="}}}`), "u:p:q||", ""},
		"an identity token": {secret(`{"auths":{"r.io":{"identitytoken":"i"}}}`), ":|i|", ""},
		"a registry token":  {secret(`{"auths":{"r.io":{"registrytoken":"t"}}}`), ":||t", ""},
		"the older type": {&corev1.Secret{
			Type: corev1.SecretTypeDockercfg,
			Data: map[string][]byte{corev1.DockerConfigKey: []byte(`{"r.io":{"username":"u","password":"p"}}`)},
		}, "u:p||", ""},
		"another type":          {&corev1.Secret{Type: corev1.SecretTypeOpaque}, "", "holds no credentials"},
		"what is not JSON":      {secret(`{"auths":hunter2`), "", "does not hold a Docker configuration"},
		"what is not in base64": {secret(`{"auths":{"r.io":{"auth":"hunter2!"}}}`), "", "entry r.io: auth is not USER:PASSWORD"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ring, err := Parse(tc.secret)
			if (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("Parse() says %v, want %q", err, tc.problem)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error tells what is secret: %v", err)
			}
			got := ""
			for _, e := range ring {
				got += e.Username + ":" + e.Password + "|" + e.IdentityToken + "|" + e.RegistryToken
			}
			if got != tc.want {
				t.Errorf("Parse() = %q, want %q", got, tc.want)
			}
		})
	}
}
