package pull

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/node/credentials"
	"github.com/seed-69ecc383/kruise/internal/node/worker"
	rules "github.com/seed-69ecc383/kruise/internal/rules/pull"
	"github.com/seed-69ecc383/kruise/internal/rules/registry"
	"github.com/seed-69ecc383/kruise/internal/seal"
)

func TestCredentials(t *testing.T) {
	mine, other := newKey(t), newKey(t)
	plugins, err := credentials.LoadPlugins(credentials.PluginConfig{})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Config: worker.Config{Node: "n1"}, Key: mine, Plugins: plugins}
	sealed := func(key *seal.Key, node, tag, owner, text string) v1beta1.SealedCredentials {
		out, err := seal.Seal(key.Public(), []byte(text), rules.SealContext(node, rules.Reference{Repository: "nginx", Tag: tag}, owner))
		if err != nil {
			t.Fatal(err)
		}
		return v1beta1.SealedCredentials{Owner: owner, Sealed: out}
	}
	const one, two = `[{"username":"one","password":"p"}]`, `[{"username":"two"}]`
	for name, tc := range map[string]struct {
		given   []v1beta1.SealedCredentials
		want    []registry.Credentials
		problem string
	}{
		"none":                      {},
		"those of a job":            {given: []v1beta1.SealedCredentials{sealed(mine, "n1", "1", "job", one)}, want: []registry.Credentials{{Username: "one", Password: "p"}}},
		"those of two jobs":         {given: []v1beta1.SealedCredentials{sealed(mine, "n1", "1", "a", one), sealed(mine, "n1", "1", "b", two)}, want: []registry.Credentials{{Username: "one", Password: "p"}, {Username: "two"}}},
		"one of two is still good":  {given: []v1beta1.SealedCredentials{sealed(other, "n1", "1", "a", one), sealed(mine, "n1", "1", "b", two)}, want: []registry.Credentials{{Username: "two"}}},
		"sealed for an earlier key": {given: []v1beta1.SealedCredentials{sealed(other, "n1", "1", "job", one)}, problem: "waiting for the manager"},
		"not sealed yet":            {given: []v1beta1.SealedCredentials{{Owner: "job"}}, problem: "waiting for the manager"},
		"moved from another node":   {given: []v1beta1.SealedCredentials{sealed(mine, "n2", "1", "job", one)}, problem: "waiting for the manager"},
		"moved from another tag":    {given: []v1beta1.SealedCredentials{sealed(mine, "n1", "2", "job", one)}, problem: "waiting for the manager"},
		"given to another job":      {given: []v1beta1.SealedCredentials{{Owner: "thief", Sealed: sealed(mine, "n1", "1", "job", one).Sealed}}, problem: "waiting for the manager"},
		"what makes no sense":       {given: []v1beta1.SealedCredentials{sealed(mine, "n1", "1", "job", "hunter2")}, problem: "can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			task := Task{Round: Round{Repository: "nginx", Tag: "1"}, Spec: v1beta1.ImageTagSpec{Credentials: tc.given}}
			got, err := c.credentials(t.Context(), task)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) || err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("it says %v, want %q", err, tc.problem)
			}
			if waits := errors.Is(err, errSealed); waits != strings.HasPrefix(tc.problem, "waiting") {
				t.Errorf("it waits: %t", waits)
			}
		})
	}
}

func newKey(t *testing.T) *seal.Key {
	t.Helper()
	k, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}
