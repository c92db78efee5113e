package node

import (
	"errors"
	"flag"
	"net"
	"os"
	"strings"

	"github.com/seed-69ecc383/kruise/internal/logging"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
)

// Options are what the daemon is started with.
type Options struct {
	Kubeconfig   string
	Addr         string
	EnablePprof  bool
	PprofAddr    string
	SocketFile   string
	FeatureGates string
	QPS, Burst   int
	// MaxPulls is the number of images that are pulled at the same time; less than 1 is no limit.
	MaxPulls int
	// PluginConfigFile and PluginFolder say which programs give credentials of registries, and where they are.
	PluginConfigFile, PluginFolder string

	Log logging.Options

	// Several says that the process runs the daemons of several nodes, as benchmarks do: each has a connection of its own to the API
	// server, as daemons on nodes have, and the process registers no metrics of pulls.
	Several bool

	// NodeName is the node of the daemon, HostIP the address at which it serves if Addr has no host: on the network of the node it must not
	// serve at all addresses. Both come from the environment.
	NodeName, HostIP string
}

// Bind declares the flags.
func (o *Options) Bind(fs *flag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "path of a kubeconfig; empty inside a cluster")
	fs.StringVar(&o.Addr, "addr", "127.0.0.1:10221",
		"address of /metrics, /healthz and /readyz, of which everybody is answered who reaches it; without a host, that of HOST_IP")
	fs.BoolVar(&o.EnablePprof, "enable-pprof", false, "serve pprof")
	fs.StringVar(&o.PprofAddr, "pprof-addr", "localhost:10222", "address of pprof")
	fs.StringVar(&o.SocketFile, "socket-file", "",
		"the container runtime's socket, below "+cri.SocketFolder+" or a full path; empty to look where runtimes usually are")
	fs.StringVar(&o.FeatureGates, "feature-gates", "", "feature gates as Name=true|false, joined by commas; the manager's names")
	fs.IntVar(&o.QPS, "rest-config-qps", 0, "requests a second to the API server; 0 leaves the pace to the server")
	fs.IntVar(&o.Burst, "rest-config-burst", 0, "requests at once to the API server, with rest-config-qps")
	fs.IntVar(&o.MaxPulls, "max-workers-for-pull-image", -1, "images pulled at the same time; less than 1 for no limit")
	o.Log.Bind(fs)
	fs.StringVar(&o.PluginConfigFile, "plugin-config-file", "/kruise/CredentialProviderPlugin.yaml",
		"a CredentialProviderConfig, as kubelets have it, of the programs that give credentials of registries; "+
			"none are run if there is no such file")
	fs.StringVar(&o.PluginFolder, "plugin-bin-dir", "/kruise/plugins", "folder of the programs that plugin-config-file names")
}

// Logging returns how the process logs.
func (o *Options) Logging() logging.Options { return o.Log }

// FromEnvironment reads the options that the environment holds.
func (o *Options) FromEnvironment() {
	o.NodeName, o.HostIP = os.Getenv("NODE_NAME"), os.Getenv("HOST_IP")
}

// address returns where the daemon serves.
func (o *Options) address() string {
	if port, found := strings.CutPrefix(o.Addr, ":"); found && o.HostIP != "" {
		return net.JoinHostPort(o.HostIP, port)
	}
	return o.Addr
}

func (o *Options) validate() error {
	if err := o.Log.Validate(); err != nil {
		return err
	}
	if o.NodeName == "" {
		return errors.New("the environment has no NODE_NAME: set it to the name of the node that the daemon runs on")
	}
	return nil
}
