package operation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

func TestManagerSaysWhyItCannotWorkAndEnds(t *testing.T) {
	s := newSite(t, cluster.Options{Bare: true})

	t.Log("without an API server")
	s.ends(s.kubeconfig("nobody", "http://127.0.0.1:1", ""), "127.0.0.1:1", "refused")

	t.Log("without CRDs")
	s.ends(s.Kubeconfig, "CRDs are not installed: ", "clonesets.apps.kruise.io", "kubectl apply")

	s.Must(s.Install(s.Ctx))
	t.Log("without rights")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "nobody", Namespace: metav1.NamespaceDefault}}
	s.Must(s.Client.Create(s.Ctx, account))
	token := &authenticationv1.TokenRequest{}
	s.Must(s.Client.SubResource("token").Create(s.Ctx, account, token))
	s.ends(s.kubeconfig("rightless", s.Config.Host, token.Status.Token),
		"may not", "delete pods", "patch pods/status", "list clonesets.apps.kruise.io", "create podtemplates",
		"ClusterRole kruise-manager-role")

	t.Log("with an API server that is too old")
	s.ends(s.kubeconfig("old", s.olderServer("v1.31.9"), ""), "v1.31.9", "too old", "Kubernetes 1.32 or later")

	t.Log("with flags that mean nothing")
	s.ends(s.Kubeconfig+" --feature-gates=CloneSetShortHash=perhaps", "--feature-gates", "CloneSetShortHash", "perhaps")
	s.ends(s.Kubeconfig+" --cloneset-workers=0", "--cloneset-workers is 0")
}

// ends runs a manager that has to give up, and checks its exit code and its last words. The kubeconfig may have further arguments behind
// it.
func (s *site) ends(kubeconfig string, texts ...string) {
	s.Helper()
	binary, err := cluster.Binary("kruise-manager")
	s.Must(err)
	ctx, cancel := context.WithTimeout(s.Ctx, scene.Timeout)
	defer cancel()
	args := append([]string{"--kubeconfig"}, strings.Fields(kubeconfig)...)
	cmd := exec.CommandContext(ctx, binary, append(args, "--health-probe-addr=127.0.0.1:0", "--metrics-addr=0", "--enable-pprof=false")...)
	cmd.Env = append(os.Environ(), "WEBHOOK_HOST=localhost", "WEBHOOK_CERT_DIR="+filepath.Join(s.Dir, "certs"))
	var said bytes.Buffer
	cmd.Stderr = &said
	began := time.Now()
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		s.Errorf("the manager ended after %s with %v, want exit code 1; it said:\n%s", time.Since(began), err, said.String())
		return
	}
	_, last, _ := strings.Cut(said.String(), "kruise-manager: ")
	s.says(errors.New(last), texts...)
}

// kubeconfig writes one for a server and a token, and returns its path.
func (s *site) kubeconfig(name, server, token string) string {
	s.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: s.Config.CAData}
	if strings.HasPrefix(server, "http://") {
		config.Clusters[name].CertificateAuthorityData = nil
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	path := filepath.Join(s.Dir, name+".kubeconfig")
	s.Must(clientcmd.WriteToFile(*config, path))
	return path
}

// olderServer stands in front of the API server and says that it is of another version; it returns its address.
func (s *site) olderServer(gitVersion string) string {
	s.Helper()
	target, err := url.Parse(s.Config.Host)
	s.Must(err)
	transport, err := rest.TransportFor(s.Config)
	s.Must(err)
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	mux := http.NewServeMux()
	mux.Handle("/", proxy)
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(version.Info{Major: "1", Minor: "31", GitVersion: gitVersion}); err != nil {
			s.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	s.Cleanup(server.Close)
	return server.URL
}
