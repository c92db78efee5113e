package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// GatewayName is the name of the Gateway that routes name as their parent, and of its namespace.
const GatewayName = "data-plane"

// DataPlaneOptions say how the data plane is run beside the cluster.
type DataPlaneOptions struct {
	// Dir holds its log.
	Dir string
	// PodProxy is the URL of a proxy by which Pods are reached; empty if their addresses can be reached from here, as those of real nodes.
	PodProxy string
	// Args are further arguments.
	Args []string
	// Detached lets the data plane live on when the process that started it ends. If Dir is in folder beside of the cluster, it ends with
	// that.
	Detached bool
}

// DataPlane is a proxy that runs as a process of this machine. It serves the routes of Gateway API that name Gateway GatewayName, and the
// Ingresses of class nginx.
type DataPlane struct {
	cmd                   *exec.Cmd
	log                   string
	gateway, ingress, own string
	exited                chan error
}

// StartDataPlane installs the CRDs of Gateway API, the Gateway and the class of Ingresses, and starts the data plane that make data-plane
// has built; it returns when that is ready.
func (c *Cluster) StartDataPlane(ctx context.Context, o DataPlaneOptions) (*DataPlane, error) {
	binary, err := Binary("data-plane")
	if err != nil {
		return nil, fmt.Errorf("%w; this one is built by make data-plane", err)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	if err := c.InstallGatewayAPI(ctx); err != nil {
		return nil, err
	}
	text := fmt.Appendf(nil, entrances, GatewayName, ports[0])
	if err := eachIn(text, func(o *unstructured.Unstructured) error { return c.apply(ctx, o) }); err != nil {
		return nil, err
	}
	d := &DataPlane{
		log: filepath.Join(o.Dir, "data-plane.log"), exited: make(chan error, 1),
		gateway: "127.0.0.1:" + ports[0], ingress: "127.0.0.1:" + ports[1], own: "127.0.0.1:" + ports[2],
	}
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	d.cmd = exec.Command(binary, append(d.flags(), o.Args...)...)
	d.cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "KUBERNETES_SERVICE_HOST=")
	if o.PodProxy != "" {
		d.cmd.Env = append(d.cmd.Env, "HTTP_PROXY="+o.PodProxy, "HTTPS_PROXY="+o.PodProxy, "NO_PROXY=")
	}
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if o.Detached {
		err = startDetached(d.cmd, o.Dir+".pid")
	} else {
		err = startTied(d.cmd)
	}
	if err != nil {
		return nil, fmt.Errorf("starting the data plane: %w", err)
	}
	go func() { d.exited <- d.cmd.Wait() }()
	return d, d.waitReady(ctx)
}

// entrances are what leads to the data plane: a Gateway for the routes of all namespaces, and the class of Ingresses.
const entrances = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: %[1]s}
spec: {controllerName: traefik.io/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: %[1]s, namespace: %[1]s}
spec:
  gatewayClassName: %[1]s
  listeners:
  - {name: web, protocol: HTTP, port: %[2]s, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
`

func (d *DataPlane) flags() []string {
	return []string{
		"--entryPoints.gateway.address=" + d.gateway,
		"--entryPoints.ingress.address=" + d.ingress,
		"--entryPoints.own.address=" + d.own,
		"--ping.entryPoint=own",
		"--serversTransport.insecureSkipVerify", // simulated Pods have certificates of no authority
		"--providers.kubernetesGateway",
		"--providers.kubernetesIngressNGINX",
		"--global.checkNewVersion=false",
		"--global.sendAnonymousUsage=false",
		"--log.level=INFO",
	}
}

func (d *DataPlane) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.own+"/ping", http.NoBody)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close() // nothing of it is read
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-d.exited:
			d.exited <- err
			return fmt.Errorf("the data plane ended before it was ready: %w\n%s", err, d.Tail(30))
		case <-ctx.Done():
			return fmt.Errorf("the data plane is not ready: %w\n%s", ctx.Err(), d.Tail(30))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Gateway returns the URL of the Gateway.
func (d *DataPlane) Gateway() string { return "http://" + d.gateway }

// Ingress returns the URL where Ingresses are served.
func (d *DataPlane) Ingress() string { return "http://" + d.ingress }

// Tail returns the last lines of the log.
func (d *DataPlane) Tail(lines int) string { return tail(d.log, lines) }

// PID returns the process id.
func (d *DataPlane) PID() int { return d.cmd.Process.Pid }

// Stop ends the data plane, and the requests on it.
func (d *DataPlane) Stop() {
	_ = d.cmd.Process.Kill() // an error means that it has ended
	d.exited <- <-d.exited
}

// InstallGatewayAPI applies the CRDs of Gateway API, from the module that the data plane is built with.
func (c *Cluster) InstallGatewayAPI(ctx context.Context) error {
	root, err := Root()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "sigs.k8s.io/gateway-api")
	cmd.Dir = filepath.Join(root, "dataplane")
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil {
		return fmt.Errorf("looking for the module of Gateway API: %w", err)
	}
	folder := filepath.Join(module.Dir, "config", "crd", "standard")
	files, err := filepath.Glob(filepath.Join(folder, "gateway.networking.k8s.io_*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("there are no CRDs of Gateway API in %s", folder)
	}
	for _, file := range files {
		if err := c.ApplyFile(ctx, file); err != nil {
			return err
		}
	}
	_, err = c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=1m", "crd", "--all")
	return err
}
