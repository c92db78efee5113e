package clusters

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

func consumerSecret(t *testing.T, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, Labels: map[string]string{
			keys.InventoryConsumer: keys.ConsumerName, keys.InventoryProfile: "member",
		}},
		Data: map[string][]byte{keys.InventoryKey: written(t, good(t))},
	}
}

// TestWaysToAClusterOfAProfile: by the program of an access provider, or else by a Secret.
func TestWaysToAClusterOfAProfile(t *testing.T) {
	program := &clientcmdapi.ExecConfig{Command: "/bin/credentials", APIVersion: "client.authentication.k8s.io/v1", ProvideClusterInfo: true}
	providers := func(field, cluster string) string {
		return fmt.Sprintf(`{"metadata":{"labels":{"env":"prod"}},"status":{%q:[{"name":"unknown","cluster":{"server":"https://other"}},{"name":"cloud","cluster":%s}]}}`, field, cluster)
	}
	tests := map[string]struct {
		profile string
		secrets []*corev1.Secret
		want    string // the address, or what the refusal says
		reason  connection.Reason
		exec    bool
	}{
		"an access provider": {profile: providers("accessProviders", `{"server":"https://member:1"}`), want: "https://member:1", exec: true},
		"an access provider by its former name": {
			profile: providers("credentialProviders", `{"server":"https://member:2"}`), want: "https://member:2", exec: true,
		},
		"the new name before the former one": {
			profile: `{"status":{"credentialProviders":[{"name":"cloud","cluster":{"server":"https://old"}}],"accessProviders":[{"name":"cloud","cluster":{"server":"https://new"}}]}}`,
			want:    "https://new", exec: true,
		},
		"a provider that reads a file": {
			profile: providers("accessProviders", `{"server":"https://member","certificate-authority":"/etc/ca"}`), want: "certificate-authority",
			reason: connection.CredentialsInvalid,
		},
		"a provider without a check": {
			profile: providers("accessProviders", `{"server":"https://member","insecure-skip-tls-verify":true}`), want: "insecure-skip-tls-verify",
			reason: connection.CredentialsInvalid,
		},
		"a Secret":            {profile: `{"status":{}}`, secrets: []*corev1.Secret{consumerSecret(t, "a")}, want: "https://member.example:6443"},
		"two Secrets":         {profile: `{"status":{}}`, secrets: []*corev1.Secret{consumerSecret(t, "a"), consumerSecret(t, "b")}, want: "2 Secrets", reason: connection.CredentialsInvalid},
		"no way":              {profile: `{"status":{}}`, want: "0 Secrets", reason: connection.CredentialsInvalid},
		"a profile that lies": {profile: `{"status":{"conditions":"none"}}`, want: "cannot be read", reason: connection.CredentialsInvalid},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newFakeHub()
			ref := Ref{Profile, "fleet", "member"}
			h.profiles[ref.key()] = tc.profile
			for _, s := range tc.secrets {
				h.secrets[Ref{Secret, s.Namespace, s.Name}.key()] = s
			}
			got, err := hub{h, Programs{"cloud": program}}.read(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if tc.reason != "" {
				if got.why == nil || got.why.Reason != tc.reason || !strings.Contains(got.why.Message, tc.want) || got.access != nil {
					t.Fatalf("got %v, %v", got.access, got.why)
				}
				return
			}
			if got.why != nil || got.access.Host != tc.want {
				t.Fatalf("got %v, %v", got.access, got.why)
			}
			if exec := got.access.ExecProvider; tc.exec != (exec != nil) || exec != nil && exec.InteractiveMode != clientcmdapi.NeverExecInteractiveMode {
				t.Errorf("program is %v", exec)
			}
		})
	}
}

func TestAProfileTellsTheProgramOfItsCluster(t *testing.T) {
	h := newFakeHub()
	ref := Ref{Profile, "fleet", "member"}
	h.profiles[ref.key()] = `{"status":{"accessProviders":[{"name":"cloud","cluster":{"server":"https://member","extensions":[
		{"name":"client.authentication.k8s.io/exec","extension":{"clusterName":"a"}},{"name":"another","extension":{"command":"sh"}}]}}]}}`
	got, err := hub{h, Programs{"cloud": {Command: "/bin/credentials", Args: []string{"one"}}}}.read(t.Context(), ref)
	if err != nil || got.why != nil {
		t.Fatal(err, got.why)
	}
	config, ok := got.access.ExecProvider.Config.(*runtime.Unknown)
	if !ok || !strings.Contains(string(config.Raw), `"clusterName"`) || got.access.ExecProvider.Command != "/bin/credentials" ||
		len(got.access.ExecProvider.Args) != 1 {
		t.Errorf("the program is %v", got.access.ExecProvider)
	}
}

func TestAProfileSaysThatItsClusterIsIll(t *testing.T) {
	h := newFakeHub()
	ref := Ref{Profile, "fleet", "member"}
	for status, want := range map[string]bool{"False": true, "True": false, "Unknown": false} {
		h.profiles[ref.key()] = fmt.Sprintf(`{"status":{"conditions":[{"type":"ControlPlaneHealthy","status":%q,"message":"etcd is full"}]}}`, status)
		got, err := hub{h, nil}.read(t.Context(), ref)
		if err != nil || (got.ill != nil) != want {
			t.Errorf("with ControlPlaneHealthy=%s it is ill: %v, %v", status, got.ill, err)
		}
	}
}

func TestClusterObjectsThatCannotBeRead(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", nil)
	tests := map[string]struct {
		change func(*fakeHub)
		ref    Ref
		want   connection.Reason
		says   string
	}{
		"a profile that is not there":     {func(*fakeHub) {}, Ref{Profile, "fleet", "a"}, connection.NotFound, "does not exist"},
		"a hub without ClusterProfiles":   {func(h *fakeHub) { h.profiles = nil }, Ref{Profile, "fleet", "a"}, connection.NotFound, "does not serve ClusterProfiles"},
		"a Secret that may not be read":   {func(h *fakeHub) { h.err = forbidden }, Ref{Secret, "fleet", "a"}, connection.Forbidden, "config/multicluster"},
		"a profile that may not be read":  {func(h *fakeHub) { h.err = forbidden }, Ref{Profile, "fleet", "a"}, connection.Forbidden, "config/multicluster"},
		"a hub that does not answer":      {func(h *fakeHub) { h.err = errHub{} }, Ref{Secret, "fleet", "a"}, "", ""},
		"a hub that is silent of Secrets": {func(h *fakeHub) { h.err = errHub{} }, Ref{Profile, "fleet", "a"}, "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newFakeHub()
			tc.change(h)
			got, err := hub{h, nil}.read(t.Context(), tc.ref)
			if (err != nil) != (tc.want == "") {
				t.Fatalf("got error %v", err)
			}
			if tc.want != "" && (got.why == nil || got.why.Reason != tc.want || !strings.Contains(got.why.Message, tc.says)) {
				t.Errorf("got %+v", got.why)
			}
		})
	}
}

func TestAccessProvidersAreReadFromAFile(t *testing.T) {
	tests := map[string]struct {
		text  string
		fails string
	}{
		"a provider":             {text: `{"providers":[{"name":"cloud","execConfig":{"command":"/bin/credentials","apiVersion":"client.authentication.k8s.io/v1"}}]}`},
		"one without a name":     {text: `{"providers":[{"execConfig":{"command":"a"}}]}`, fails: "no name"},
		"one without a program":  {text: `{"providers":[{"name":"cloud"}]}`, fails: "no execConfig"},
		"one without a command":  {text: `{"providers":[{"name":"cloud","execConfig":{}}]}`, fails: "no execConfig"},
		"a file that is no JSON": {text: `providers: []`, fails: "reading the access providers"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "providers.json")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadPrograms(path)
			if tc.fails == "" {
				if err != nil || got["cloud"].Command != "/bin/credentials" {
					t.Errorf("got %v, %v", got, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("got %v, want %q", err, tc.fails)
			}
		})
	}
	if _, err := ReadPrograms(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there has providers")
	}
}
