package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-69ecc383/kruise/localcluster/binaries"
	"github.com/seed-69ecc383/kruise/localcluster/component"
	"github.com/seed-69ecc383/kruise/localcluster/process"
)

// auditPolicy says who did what, and nothing of the content: enough to count requests by client, verb and resource.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: ["RequestReceived"]
rules:
- level: Metadata
`

// schedulerConfig lifts the client's rate limit, which would otherwise be what a benchmark measures.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: %q
  contentType: application/vnd.kubernetes.protobuf
  qps: 5000
  burst: 10000
`

// components are the names of what this cluster runs, in the order in which they start.
func (c *Cluster) components() []string {
	if c.state.Config.Bare {
		return []string{component.Etcd, component.APIServer}
	}
	names := []string{component.Etcd, component.APIServer, component.ControllerManager, component.Scheduler, component.Simulator}
	if c.state.Config.RealNodes > 0 {
		names = append(names, component.Registry)
	}
	return names
}

// ensureConfig writes the files that components read besides their flags.
func (c *Cluster) ensureConfig() error {
	if err := writeFile(c.path("config", "audit-policy.yaml"), []byte(auditPolicy)); err != nil {
		return err
	}
	scheduler := fmt.Sprintf(schedulerConfig, c.kubeconfigOf(component.Scheduler))
	return writeFile(c.path("config", "scheduler.yaml"), []byte(scheduler))
}

// Program returns the program of Kubernetes of this name that the cluster uses.
func (c *Cluster) Program(ctx context.Context, name string) (binaries.Program, error) {
	beside, err := binaries.Beside()
	if err != nil {
		return binaries.Program{}, err
	}
	return binaries.Finder{Kubernetes: binaries.Wanted(), Folder: c.state.Config.Binaries, Beside: beside}.Find(ctx, name)
}

// byProgram has a process run a program of Kubernetes: the compiled one acts by the process's name; an installed one is run by
// kruise-local, which ends it with the cluster.
func (c *Cluster) byProgram(ctx context.Context, spec process.Spec) (process.Spec, error) {
	name, _, _ := strings.Cut(spec.Name, "@")
	program, err := c.Program(ctx, name)
	if err != nil {
		return spec, err
	}
	if program.Compiled {
		spec.Path = program.Path
	} else {
		spec.Args = append([]string{program.Path}, spec.Args...)
	}
	return spec, nil
}

// spec is how a component is run. Flags of the user come last: the last one said wins.
func (c *Cluster) spec(ctx context.Context, name string) (process.Spec, error) {
	flags := map[string]func() []string{
		component.Etcd:              c.etcdFlags,
		component.APIServer:         c.apiServerFlags,
		component.ControllerManager: c.controllerManagerFlags,
		component.Scheduler:         c.schedulerFlags,
		component.Simulator:         c.simulatorFlags,
		component.Registry:          c.registryFlags,
	}[name]
	spec := c.forOwner(process.Spec{Name: name, Args: append(flags(), c.state.Config.Args[name]...)})
	if name == component.Etcd || name == component.APIServer {
		spec.Env = append(spec.Env, relaxedGC()...)
	}
	if name == component.Simulator || name == component.Registry {
		return spec, nil
	}
	return c.byProgram(ctx, spec)
}

// relaxedGC trades memory, up to a limit, for a fifth of the processor time of the servers that every other part waits
// for. Whoever sets GOGC knows better.
func relaxedGC() []string {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	return []string{"GOGC=400", fmt.Sprintf("GOMEMLIMIT=%d", max(leastRelaxed, memoryOfMachine()/4))}
}

// leastRelaxed is the memory up to which a server relaxes its collection of garbage at least. A cluster with many thousands of Pods needs
// more: a server above the limit spends up to half of its processor time on garbage.
const leastRelaxed = 2 << 30

// memoryOfMachine returns the memory of this machine in bytes; 0 where it is not known.
func memoryOfMachine() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0 // not on every system
	}
	var kib int64
	if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err != nil {
		return 0
	}
	return kib << 10
}

func (c *Cluster) etcdFlags() []string {
	client := fmt.Sprintf("https://127.0.0.1:%d", c.state.Ports.Etcd)
	peer := fmt.Sprintf("https://127.0.0.1:%d", c.state.Ports.EtcdPeer)
	return []string{
		"--name=local",
		"--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=local=" + peer,
		"--client-cert-auth",
		"--trusted-ca-file=" + c.pki().Cert(etcdCA),
		"--cert-file=" + c.pki().Cert("etcd"),
		"--key-file=" + c.pki().Key("etcd"),
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file=" + c.pki().Cert(etcdCA),
		"--peer-cert-file=" + c.pki().Cert("etcd"),
		"--peer-key-file=" + c.pki().Key("etcd"),
		"--unsafe-no-fsync", // a power cut may cost the cluster, which is made again in seconds
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	}
}

func (c *Cluster) apiServerFlags() []string {
	keys := c.pki()
	flags := []string{
		"--bind-address=" + c.bindAddress(),
		"--secure-port=" + strconv.Itoa(c.state.Ports.APIServer),
		"--advertise-address=" + advertisedAddress(),
		"--service-cluster-ip-range=" + serviceNetwork,
		"--tls-cert-file=" + keys.Cert("serving"),
		"--tls-private-key-file=" + keys.Key("serving"),
		"--client-ca-file=" + keys.Cert(clusterCA),
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", c.state.Ports.Etcd),
		"--etcd-cafile=" + keys.Cert(etcdCA),
		"--etcd-certfile=" + keys.Cert("etcd-client"),
		"--etcd-keyfile=" + keys.Key("etcd-client"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + string(keys) + "/" + tokenKey + ".pub",
		"--service-account-signing-key-file=" + keys.Key(tokenKey),
		"--requestheader-client-ca-file=" + keys.Cert(frontProxyCA),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + keys.Cert("front-proxy"),
		"--proxy-client-key-file=" + keys.Key("front-proxy"),
		"--kubelet-client-certificate=" + keys.Cert("kubelet-client"),
		"--kubelet-client-key=" + keys.Key("kubelet-client"),
		"--kubelet-preferred-address-types=InternalIP",
		"--allow-privileged=true",
		"--enable-aggregator-routing=true", // Services are dialled at their endpoints: there is no kube-proxy here
		"--max-requests-inflight=3000",
		"--max-mutating-requests-inflight=2000",
		"--event-ttl=1h",
		"--profiling=false",
		"--enable-admission-plugins=NodeRestriction",
	}
	configured := func(flag string) bool { return strings.HasPrefix(flag, "--authorization-config=") }
	if !slices.ContainsFunc(c.state.Config.Args["kube-apiserver"], configured) { // one excludes the other
		flags = append(flags, "--authorization-mode=Node,RBAC")
	}
	if c.state.Config.Bare {
		// Without the controller that makes service accounts, no Pod could be created.
		flags = append(flags, "--disable-admission-plugins=ServiceAccount")
	}
	if !c.state.Config.NoAudit {
		flags = append(flags,
			"--audit-policy-file="+c.path("config", "audit-policy.yaml"),
			"--audit-log-path="+c.AuditLog(),
			"--audit-log-mode=blocking", // a batched log drops records when it is busy, and then counts are wrong
			"--audit-log-maxsize=2048",
			"--audit-log-maxbackup=1",
		)
	}
	return flags
}

// bindAddress is the loopback address unless containers of real nodes must reach the API server too.
func (c *Cluster) bindAddress() string {
	if c.state.Config.RealNodes > 0 {
		return "0.0.0.0"
	}
	return "127.0.0.1"
}

func (c *Cluster) controllerManagerFlags() []string {
	keys := c.pki()
	return append(c.servingFlags(component.ControllerManager, c.state.Ports.ControllerManager),
		"--kubeconfig="+c.kubeconfigOf(component.ControllerManager),
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+keys.Key(tokenKey),
		"--root-ca-file="+keys.Cert(clusterCA),
		"--cluster-signing-cert-file="+keys.Cert(clusterCA),
		"--cluster-signing-key-file="+keys.Key(clusterCA),
		"--controllers=*",
		"--kube-api-qps=5000",
		"--kube-api-burst=10000",
		// A machine that is busy with tests must not lose its nodes; `node stop` does not wait for this.
		"--node-monitor-grace-period=2m",
		"--profiling=false",
	)
}

func (c *Cluster) schedulerFlags() []string {
	return append(c.servingFlags(component.Scheduler, c.state.Ports.Scheduler),
		"--config="+c.path("config", "scheduler.yaml"),
	)
}

// servingFlags are those of a component's own port, for health and metrics.
func (c *Cluster) servingFlags(name string, port int) []string {
	return []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + c.pki().Cert("serving"),
		"--tls-private-key-file=" + c.pki().Key("serving"),
		"--authentication-kubeconfig=" + c.kubeconfigOf(name),
		"--authorization-kubeconfig=" + c.kubeconfigOf(name),
		"--authorization-always-allow-paths=/healthz,/readyz,/livez",
		"--requestheader-client-ca-file=" + c.pki().Cert(frontProxyCA),
		"--client-ca-file=" + c.pki().Cert(clusterCA),
	}
}

func (c *Cluster) simulatorFlags() []string {
	flags := []string{
		"--kubeconfig=" + c.kubeconfigOf(component.Simulator),
		"--volumes=" + c.Volumes(),
	}
	for _, name := range slices.Sorted(maps.Keys(c.state.Config.Simulation)) {
		flags = append(flags, "--"+name+"="+c.state.Config.Simulation[name])
	}
	return flags
}

func (c *Cluster) registryFlags() []string {
	return []string{"--listen=" + c.RegistryAddress(), "--store=" + string(c.Images())}
}

// fingerprint identifies how a component is run, so that Up notices what must be restarted.
func fingerprint(spec process.Spec) []byte {
	sum := sha256.Sum256([]byte(strings.Join(slices.Concat([]string{spec.Path}, spec.Args, spec.Env), "\x00")))
	return []byte(hex.EncodeToString(sum[:]) + "\n")
}

func (c *Cluster) fingerprintFile(name string) string { return c.path("run", name+".args") }

// runsAs tells whether a component that runs was started as spec says.
func (c *Cluster) runsAs(spec process.Spec) bool {
	recorded, err := os.ReadFile(c.fingerprintFile(spec.Name))
	return err == nil && string(recorded) == string(fingerprint(spec))
}
