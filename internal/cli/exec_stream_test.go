package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/seed-69ecc383/kruise/internal/cli/access"
	"github.com/seed-69ecc383/kruise/internal/rules/sidecar"
)

// kubelet is an API server with one Pod, in whose containers it runs a command of its own: that answers each line of its input in capitals, and
// ends with a code when the input does.
type kubelet struct {
	*testing.T
	in *corev1.Pod
	// sockets says whether it speaks WebSocket, or SPDY alone as what is behind an old proxy.
	sockets bool
	code    int
	// asked is the query of the last command.
	asked map[string][]string
}

// serve runs it, and returns the path of a kubeconfig for it.
func (k *kubelet) serve() string {
	k.Helper()
	mux := http.NewServeMux()
	for path, object := range map[string]any{
		"/api":  metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}},
		"/api/v1": metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{{Name: "pods", SingularName: "pod", Namespaced: true, Kind: "Pod", Verbs: []string{"get", "list"}}},
		},
		"/api/v1/namespaces/shop/pods/web-a": k.in,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(object); err != nil {
				k.Error(err)
			}
		})
	}
	mux.HandleFunc("/api/v1/namespaces/shop/pods/web-a/exec", k.exec)
	server := httptest.NewTLSServer(mux)
	k.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	dir := k.TempDir()
	file := filepath.Join(dir, "ca.pem")
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]\n"+
		"contexts: [{name: c, context: {cluster: c, user: u, namespace: shop}}]\nusers: [{name: u, user: {token: t}}]\ncurrent-context: c\n",
		server.URL, file)
	for name, text := range map[string][]byte{file: ca, filepath.Join(dir, "config"): []byte(config)} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			k.Fatal(err)
		}
	}
	return filepath.Join(dir, "config")
}

func (k *kubelet) exec(w http.ResponseWriter, r *http.Request) {
	switch {
	case wsstream.IsWebSocketRequest(r) && k.sockets:
		conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{remotecommand.StreamProtocolV5Name: {Binary: true, Channels: []wsstream.ChannelType{
			wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.ReadChannel,
		}}})
		_, streams, err := conn.Open(w, r)
		if err != nil {
			k.Error(err)
			return
		}
		defer func() { _ = conn.Close() }() // the client has what it needs
		k.run(r, streams[0], streams[1], streams[2], streams[3])
	case wsstream.IsWebSocketRequest(r):
		http.Error(w, "no WebSocket passes here", http.StatusBadRequest)
	default:
		k.speakSPDY(w, r)
	}
}

func (k *kubelet) speakSPDY(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
		k.Error(err)
		return
	}
	opened := make(chan httpstream.Stream, 4)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		opened <- s
		return nil
	})
	if conn == nil {
		k.Error("the connection was not upgraded")
		return
	}
	defer func() { _ = conn.Close() }() // the client has what it needs
	streams := map[string]httpstream.Stream{}
	for len(streams) < 4 {
		s := <-opened
		streams[s.Headers().Get(corev1.StreamType)] = s
	}
	k.run(r, streams[corev1.StreamTypeStdin], streams[corev1.StreamTypeStdout], streams[corev1.StreamTypeStderr], streams[corev1.StreamTypeError])
}

// run is the command.
func (k *kubelet) run(r *http.Request, in io.Reader, out, err, end io.Writer) {
	k.asked = r.URL.Query()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		fmt.Fprintln(out, strings.ToUpper(lines.Text()))
	}
	fmt.Fprintln(err, "the input has ended")
	status := metav1.Status{Status: metav1.StatusSuccess}
	if k.code != 0 {
		status = metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: fmt.Sprint(k.code)}}},
		}
	}
	if err := json.NewEncoder(end).Encode(status); err != nil {
		k.Error(err)
	}
}

// TestExecStreams talks with a command in the working container of a hot-upgrade sidecar: each line is answered before the next one is written.
func TestExecStreams(t *testing.T) {
	first, second := sidecar.HotContainers("proxy")
	in := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-a"}}
	for _, name := range []string{"app", first, second} {
		in.Spec.Containers = append(in.Spec.Containers, corev1.Container{Name: name})
	}
	sidecar.SetWorking(in, "proxy", second)
	for name, tc := range map[string]struct {
		sockets bool
		code    int
	}{
		"by WebSocket":                   {true, 0},
		"by WebSocket, and it fails":     {true, 7},
		"by SPDY where no socket passes": {false, 0},
		"by SPDY, and it fails":          {false, 7},
	} {
		t.Run(name, func(t *testing.T) {
			k := &kubelet{T: t, in: in, sockets: tc.sockets, code: tc.code}
			config := k.serve()
			input, write := io.Pipe()
			read, output := io.Pipe()
			var problems bytes.Buffer
			ended := make(chan int, 1)
			go func() {
				code := Main(t.Context(), []string{"kubectl-kruise", "--kubeconfig", config, "--cache-dir", t.TempDir(), "exec", "web-a", "-S", "proxy", "-i", "--", "talk", "loud"},
					Streams{In: input, Out: output, Err: &problems, Getenv: func(string) string { return "" }})
				_ = output.Close() // it never fails
				ended <- code
			}()
			answers := bufio.NewReader(read)
			for _, line := range []string{"one", "two"} {
				fmt.Fprintln(write, line)
				if got, err := answers.ReadString('\n'); err != nil || got != strings.ToUpper(line)+"\n" {
					t.Fatalf("to %q it says %q, %v; %s", line, got, err, problems.String())
				}
			}
			if err := write.Close(); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(answers)
			if code := <-ended; code != tc.code || len(rest) > 0 || err != nil {
				t.Errorf("it ends with %d, want %d, and says %q, %v", code, tc.code, rest, err)
			}
			if got := problems.String(); got != "the input has ended\n" {
				t.Errorf("the other output is %q", got)
			}
			if got := fmt.Sprint(k.asked["container"], k.asked["command"], k.asked["stdin"], k.asked["tty"]); got != fmt.Sprintf("[%s] [talk loud] [true] []", second) {
				t.Errorf("it was asked for %s", got)
			}
		})
	}
}

// TestNoRollouts looks for the Rollout of a workload in a cluster that does not have the kind: there is none, and that is no error.
func TestNoRollouts(t *testing.T) {
	k := &kubelet{T: t, in: &corev1.Pod{}}
	p := &program{cluster: access.New(io.Discard)}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	p.cluster.AddFlags(flags)
	if err := flags.Parse([]string{"--kubeconfig", k.serve(), "--cache-dir", t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	if found, err := p.releasedBy(t.Context(), access.Object{Unstructured: &unstructured.Unstructured{}}); found != nil || err != nil {
		t.Errorf("it is released by %v, %v", found, err)
	}
}
