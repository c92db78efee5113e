package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/seed-69ecc383/kruise/localcluster/cluster"
)

func TestUpChangesWhatIsSaidAndKeepsTheRest(t *testing.T) {
	fresh := cluster.Config{Nodes: cluster.Unset}
	tests := map[string]struct {
		before cluster.Config
		args   []string
		want   cluster.Config
		fails  bool
	}{
		"a new cluster has three nodes":       {before: fresh, want: cluster.Config{Nodes: 3}},
		"a new cluster may have none":         {before: fresh, args: []string{"--nodes", "0"}, want: cluster.Config{}},
		"a cluster without nodes stays so":    {before: cluster.Config{}, want: cluster.Config{}},
		"real nodes take the place of others": {before: fresh, args: []string{"--real-nodes", "2"}, want: cluster.Config{RealNodes: 2}},
		"a bare cluster has no nodes":         {before: fresh, args: []string{"--bare"}, want: cluster.Config{Bare: true}},
		"a bare cluster stays bare":           {before: cluster.Config{Bare: true}, want: cluster.Config{Bare: true}},
		"bare does not go with nodes":         {before: fresh, args: []string{"--bare", "--nodes", "2"}, fails: true},
		"nodes are added": {
			before: cluster.Config{Nodes: 3}, args: []string{"--nodes", "5"}, want: cluster.Config{Nodes: 5},
		},
		"nodes are not taken away": {
			before: cluster.Config{Nodes: 3}, args: []string{"--nodes", "1"}, want: cluster.Config{Nodes: 3},
		},
		"flags of components are sorted by component": {
			before: cluster.Config{Nodes: 3},
			args:   []string{"--k8s-args", "etcd:--a=1", "--k8s-args", "kube-scheduler:--b", "--k8s-args", "etcd:--c=x:y"},
			want:   cluster.Config{Nodes: 3, Args: map[string][]string{"etcd": {"--a=1", "--c=x:y"}, "kube-scheduler": {"--b"}}},
		},
		"a flag of an unknown component is refused": {before: fresh, args: []string{"--k8s-args", "kubectl:--a"}, fails: true},
		"a flag without a component is refused":     {before: fresh, args: []string{"--k8s-args", "--a"}, fails: true},
		"flags of the simulation are kept": {
			before: cluster.Config{Nodes: 3, Simulation: map[string]string{"sim-start": "1s"}}, want: cluster.Config{Nodes: 3, Simulation: map[string]string{"sim-start": "1s"}},
		},
		"flags of the simulation are laid over those before": {
			before: cluster.Config{Nodes: 3, Simulation: map[string]string{"sim-start": "1s"}}, args: []string{"--sim-stop", "2s"},
			want: cluster.Config{Nodes: 3, Simulation: map[string]string{"sim-start": "1s", "sim-stop": "2s"}},
		},
		"the audit log can be turned off": {
			before: cluster.Config{Nodes: 3}, args: []string{"--audit=false"}, want: cluster.Config{Nodes: 3, NoAudit: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newUpFlags()
			flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
			f.bind(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			got := tc.before
			err := f.change(flags, &got)
			if (err != nil) != tc.fails {
				t.Fatalf("got error %v, want one: %t", err, tc.fails)
			}
			if diff := cmp.Diff(tc.want, got); err == nil && diff != "" {
				t.Errorf("config differs (-want +got):\n%s", diff)
			}
		})
	}
}
