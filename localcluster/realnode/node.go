package realnode

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seed-69ecc383/kruise/localcluster/process"
	"github.com/seed-69ecc383/kruise/localcluster/simnode"
)

// Node is one real node.
type Node struct {
	Site
	Index int
	Name  string
}

// Credentials are the paths of a node's keys.
type Credentials struct {
	// Kubeconfig is that of the user system:node:NAME.
	Kubeconfig string
	// Cert and Key are the kubelet's as a server, and ClientCA is whose clients it believes.
	Cert, Key, ClientCA string
}

// The programs of a node. Its processes are called PROGRAM@NODE.
const (
	Containerd = "containerd"
	Kubelet    = "kubelet"
	// Daemon is Kruise's own, which not every cluster has.
	Daemon = "kruise-daemon"
)

// Processes are the names of the node's processes, in the order in which they start.
func (n Node) Processes() []string {
	return []string{Containerd + "@" + n.Name, Kubelet + "@" + n.Name, Daemon + "@" + n.Name}
}

// Address is the node's own IP address, at which its kubelet serves.
func (n Node) Address() netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(n.Number), byte(n.Index), 1})
}

// subnet is the range of the node's Pods.
func (n Node) subnet() netip.Prefix { return netip.PrefixFrom(n.Address(), 24) }

func (n Node) bridge() string { return fmt.Sprintf("krl%d-%d", n.Number, n.Index) }

// cgroup is the node's own below every cgroup hierarchy.
func (n Node) cgroup() string { return fmt.Sprintf("kruise-local-%d-%s", n.Number, n.Name) }

// cniNetwork is the name under which the network plugins keep records of the node's Pods.
func (n Node) cniNetwork() string { return n.cgroup() }

func (n Node) path(parts ...string) string {
	return filepath.Join(append([]string{n.Dir, n.Name}, parts...)...)
}

func (n Node) runFolder() string { return filepath.Join(n.Site.runFolder(), n.Name) }

// Socket is where the node's containerd serves, also to tools as ctr and crictl.
func (n Node) Socket() string { return filepath.Join(n.runFolder(), "containerd.sock") }

// Prepare writes all that the node's processes read, and makes its cgroup and bridge.
func (n Node) Prepare(credentials Credentials) error {
	for _, folder := range []string{n.path(), n.path("cni"), n.path("hosts"), n.runFolder()} {
		if err := os.MkdirAll(folder, 0o711); err != nil {
			return fmt.Errorf("preparing node %s: %w", n.Name, err)
		}
	}
	files := map[string]string{
		n.path("cni", "10-bridge.conflist"): n.cniConfig(),
		n.path("containerd.toml"):           n.containerdConfig(),
		n.path("kubelet.yaml"):              n.kubeletConfig(credentials),
	}
	for path, content := range files {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("preparing node %s: %w", n.Name, err)
		}
	}
	if err := n.makeCgroup(); err != nil {
		return fmt.Errorf("preparing node %s: %w", n.Name, err)
	}
	return n.makeBridge()
}

// HostsFolder is where the node looks up which server has the images of a registry, in files as containerd's certs.d has them.
func (n Node) HostsFolder() string { return n.path("hosts") }

// Spec is how one of the node's processes is run.
func (n Node) Spec(program string, credentials Credentials) process.Spec {
	spec := process.Spec{Name: program + "@" + n.Name}
	switch program {
	case Containerd:
		spec.Args = []string{containerdProgram, "--config", n.path("containerd.toml"), "--log-level", "warn"}
	case Kubelet:
		spec.Args = []string{
			"--config=" + n.path("kubelet.yaml"),
			"--kubeconfig=" + credentials.Kubeconfig,
			"--root-dir=" + n.path("kubelet"),
			"--cert-dir=" + n.path("kubelet", "pki"),
			"--hostname-override=" + n.Name,
			"--node-ip=" + n.Address().String(),
			"--node-labels=" + n.labels(),
		}
	}
	return spec
}

// daemonPort is not the usual one, so that a daemon that runs as a Pod finds that free.
const daemonPort = 10231

// DaemonSpec is how Kruise's daemon of the node is run, given its program.
func (n Node) DaemonSpec(program, kubeconfig string) process.Spec {
	return process.Spec{
		Name: Daemon + "@" + n.Name,
		Args: []string{
			program,
			"--kubeconfig=" + kubeconfig,
			"--addr=" + net.JoinHostPort(n.Address().String(), strconv.Itoa(daemonPort)),
			"--socket-file=" + n.Socket(),
		},
		Env: []string{"NODE_NAME=" + n.Name},
	}
}

// labels are those of the node's own, as simulated nodes have them.
func (n Node) labels() string {
	return strings.Join([]string{
		simnode.LabelNode + "=" + Real,
		corev1.LabelTopologyZone + "=" + simnode.Zone(n.Index),
		corev1.LabelTopologyRegion + "=" + simnode.Region,
	}, ",")
}

// Endpoint is where the node's kubelet serves exec, logs and the like, as host:port.
func (n Node) Endpoint() string {
	return net.JoinHostPort(n.Address().String(), strconv.Itoa(kubeletPort))
}

// AwaitRuntime returns when the node's containerd can run Pods; alive tells whether it still runs at all.
func (n Node) AwaitRuntime(ctx context.Context, alive func() bool) error {
	for {
		err := n.askRuntime(ctx)
		if err == nil {
			return nil
		}
		if !alive() {
			return fmt.Errorf("waiting for containerd of node %s: it ended", n.Name)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for containerd of node %s: %w", n.Name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// askRuntime asks containerd how it is, to which it has no answer before it can run Pods.
func (n Node) askRuntime(ctx context.Context) error {
	// gRPC complains aloud where nobody listens yet.
	probe, err := (&net.Dialer{}).DialContext(ctx, "unix", n.Socket())
	if err != nil {
		return err
	}
	probe.Close()
	connection, err := grpc.NewClient("unix://"+n.Socket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = runtimeapi.NewRuntimeServiceClient(connection).Status(ctx, &runtimeapi.StatusRequest{})
	return err
}

func (n Node) cniConfig() string {
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": %q,
  "plugins": [{
    "type": "bridge",
    "bridge": %q,
    "isGateway": true,
    "hairpinMode": true,
    "ipam": {
      "type": "host-local",
      "dataDir": %q,
      "ranges": [[{"subnet": %q}]],
      "routes": [{"dst": "0.0.0.0/0"}]
    }
  }]
}
`, n.cniNetwork(), n.bridge(), n.path("addresses"), n.subnet().Masked())
}

// containerdConfig leaves nothing at a default that another node of this machine could share.
func (n Node) containerdConfig() string {
	return fmt.Sprintf(`version = 2
root = %q
state = %q

[grpc]
  address = %q

[plugins."io.containerd.internal.v1.opt"]
  path = %q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  # Where a process may not lower its own score, no sandbox would start.
  restrict_oom_score_adj = true
  # Namespaces of Pods' networks are files; here they are found again, whatever crashes.
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = %q
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %q
`, n.path("containerd"), filepath.Join(n.runFolder(), "containerd"), n.Socket(), n.path("opt"), sandboxImage,
		filepath.Join(n.runFolder(), "runc"), pluginFolder(), n.path("cni"), n.HostsFolder())
}

// kubeletPort is the usual one: each node has an address of its own.
const kubeletPort = 10250

const sandboxImage = "registry.k8s.io/pause:3.6"

func (n Node) kubeletConfig(credentials Credentials) string {
	address := n.Address().String()
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
port: %[9]d
healthzBindAddress: %[1]s
healthzPort: 10248
tlsCertFile: %[2]q
tlsPrivateKeyFile: %[3]q
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[4]q}
authorization: {mode: Webhook}
containerRuntimeEndpoint: %[5]q
cgroupDriver: cgroupfs
cgroupRoot: %[6]q
# What this machine is must not matter to those who try things out on it.
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
evictionHard: {nodefs.available: "0%%", imagefs.available: "0%%", nodefs.inodesFree: "0%%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
oomScoreAdj: 0
makeIPTablesUtilChains: false
podLogsDir: %[7]q
volumePluginDir: %[8]q
serializeImagePulls: false
registryPullQPS: 0
eventRecordQPS: 0
`, address, credentials.Cert, credentials.Key, credentials.ClientCA, "unix://"+n.Socket(), "/"+n.cgroup(), n.path("pod-logs"),
		n.path("volume-plugins"),
		kubeletPort)
}

// gateway is the address of the bridge, which is the node's own.
func (n Node) gateway() string { return n.Address().String() + "/" + strconv.Itoa(n.subnet().Bits()) }
