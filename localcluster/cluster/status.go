package cluster

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/localcluster/process"
)

// Status is what a cluster is right now.
type Status struct {
	// Name is empty for the cluster without one.
	Name       string            `json:"name,omitempty"`
	Dir        string            `json:"dir"`
	Server     string            `json:"server"`
	Kubeconfig string            `json:"kubeconfig"`
	Components []ComponentStatus `json:"components"`
	// Problem says why the API does not answer; "" if it does.
	Problem    string `json:"problem,omitempty"`
	Version    string `json:"version,omitempty"`
	Nodes      int    `json:"nodes"`
	ReadyNodes int    `json:"readyNodes"`
}

// ComponentStatus is one process.
type ComponentStatus struct {
	Name  string `json:"name"`
	Alive bool   `json:"alive"`
	Pid   int    `json:"pid,omitempty"`
	// LastLine is the last line of the log of a component that is not alive.
	LastLine string `json:"lastLine,omitempty"`
}

// Healthy is true when every process runs and the API answers.
func (s Status) Healthy() bool {
	for _, component := range s.Components {
		if !component.Alive {
			return false
		}
	}
	return s.Problem == ""
}

// Status looks at the processes and asks the API.
func (c *Cluster) Status(ctx context.Context) (Status, error) {
	status := Status{Name: c.state.Config.Name, Dir: c.Dir, Server: c.Server(), Kubeconfig: c.Kubeconfig()}
	home := c.Home()
	names, err := c.expected()
	if err != nil {
		return status, err
	}
	for _, name := range names {
		component := ComponentStatus{Name: name}
		component.Pid, component.Alive = home.Alive(name)
		if !component.Alive {
			line, err := process.Tail(home.LogFile(name), 1)
			if err != nil {
				return status, err
			}
			component.LastLine = line
		}
		status.Components = append(status.Components, component)
	}
	client, err := c.Client()
	if err != nil {
		return status, err
	}
	if ready, why := apiReady(ctx, client); !ready {
		status.Problem = why
		return status, nil
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return status, fmt.Errorf("asking for the version: %w", err)
	}
	status.Version = version.GitVersion
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return status, fmt.Errorf("listing nodes: %w", err)
	}
	status.Nodes = len(nodes.Items)
	for i := range nodes.Items {
		if NodeReady(&nodes.Items[i]) {
			status.ReadyNodes++
		}
	}
	return status, nil
}

// expected are the parts that should run: the components, and whatever else was started, as the daemons of real nodes.
func (c *Cluster) expected() ([]string, error) {
	names := c.components()
	started, err := c.Home().Names()
	if err != nil {
		return nil, err
	}
	for _, name := range started {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}
