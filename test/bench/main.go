// Command bench measures a CloneSet against a native Deployment, an Advanced StatefulSet or DaemonSet against its native namesake, or a
// UnitedDeployment of ten CloneSets, and one of three CloneSets in three clusters, against one CloneSet of as many Pods: on the same
// control plane, on the same simulated nodes, in the same run.
//
// For each contender and phase it reports the wall time, the CPU time of the contender's controller, the API requests for each Pod by verb
// as the audit log tells them, the peak memory, and the largest number of Pods that were unavailable. Counts do not depend on the machine;
// seconds do, so that only their ratio means something elsewhere. A contender that updates one Pod after the other may take hours for many
// Pods; after -limit its phase is broken off, and the seconds are those until then times all Pods by those that are updated, marked with a
// tilde.
//
// Beside them, another client writes to a ConfigMap of its own twenty times a second; how long its writes take in each phase, and while
// nothing is done, says what a rollout costs others. A small CloneSet or Deployment loses a Pod every second: how long its controller takes
// to create another says how long changes wait for the work on a large one.
//
// Clocks of a loaded machine swing from run to run: an API server under a burst breaks off watches, now of one component, now of another.
// So a CloneSet and a Deployment create and remove their Pods -rounds times, taking turns, and of each such phase the round with the median
// time is reported.
//
// With -kind injection it measures what it costs to create a Pod while there are so many SidecarSets, of which few or all match it, and
// with -kind load what becomes of Pods that are created at a steady rate among hundreds of SidecarSets. With -kind upgrade it measures how
// long it takes to give a sidecar another image in all Pods, and with -kind spread the admission of Pods that a WorkloadSpread gives to
// subsets. With -kind rollout it measures releases of a Deployment in steps: by a Rollout, by
// hand, and without steps. With -kind screens it measures what kubectl-kruise takes to show a workload. With -kind foreign it measures
// what a manager takes from its start in a cluster with Pods that are not Kruise's. With -kind daemons it measures what the daemons of so
// many nodes take, and cost the API server. With -kind scale it measures how cost grows with Pods, CloneSets, Pods that are not Kruise's,
// nodes and SidecarSets; tools/plot draws that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// settings are the choices of one run.
type settings struct {
	pods, nodes int
	// allPods is the number of Pods in the cluster, where screens are measured.
	allPods int
	out     string
	idle    time.Duration
	// only is the one contender that is measured; empty for all.
	only string
	// kind says which contenders there are.
	kind  string
	terse bool
	// limit is how long a phase may take before it is broken off, and the rest of it reckoned.
	limit time.Duration
	// start is how long simulated kubelets take to start containers.
	start time.Duration
	// restart is how long simulated kubelets take to replace a container by one with another image.
	restart time.Duration
	// rounds is how often creation, recreation and removal are measured, where containers take their time.
	rounds int
	// components are further flags of the control plane's components.
	components []string
	// sets is the number of SidecarSets, and rate that of new Pods a second, where admission is measured under load.
	sets int
	rate float64
	// profile is the file for the manager's CPU profile under load; empty for none.
	profile string
	// own is the number of Pods in CloneSets, watch how long a manager is watched from its start, and memoryLimit its GOMEMLIMIT, where
	// foreign Pods are measured.
	own         int
	watch       time.Duration
	memoryLimit string
	// points are the sizes that are measured in each dimension of growth; none for those of the dimension.
	points []int
}

func main() {
	var s settings
	flag.IntVar(&s.pods, "n", 1000, "Pods of each contender")
	flag.IntVar(&s.nodes, "nodes", 50, "simulated nodes")
	flag.StringVar(&s.out, "out", "bench.json", "file for the figures")
	flag.StringVar(&s.kind, "kind", "cloneset", "what is measured: cloneset, uniteddeployment, statefulset, or daemonset, "+
		"which has a node for each Pod; gates, what a readiness gate costs; "+
		"injection, the admission of Pods one at a time; load, the same of many; upgrade, another image of a sidecar in all Pods; "+
		"spread, the admission of Pods with a WorkloadSpread; rollout, "+
		"releases of a Deployment in steps; screens, those of the command line for a CloneSet; foreign, what Pods that are not "+
		"Kruise's cost a manager; daemons, those of so many nodes; or scale, how cost grows")
	flag.DurationVar(&s.idle, "idle", 2*time.Minute, "how long to watch a CloneSet at rest, and again after a restart; 0 to leave this out")
	flag.StringVar(&s.only, "only", "", "measure one contender alone, such as Deployment or CloneSet, or of -kind scale one dimension: "+
		"pods, clonesets, foreign, nodes or sidecarsets")
	flag.BoolVar(&s.terse, "terse", false,
		"have simulated kubelets leave out writes that no controller acts on, for numbers of Pods at which the API server is the limit")
	flag.DurationVar(&s.limit, "limit", 15*time.Minute,
		"how long a phase may take; one that takes longer is broken off, and its time reckoned from how far it has come")
	flag.DurationVar(&s.start, "start", 2*time.Second, "how long simulated kubelets take to start a Pod's containers, give or take a "+
		"half; only for -kind cloneset, gates, upgrade and rollout, the rest would take hours")
	flag.DurationVar(&s.restart, "restart", 500*time.Millisecond, "how long simulated kubelets take, give or take a half, from the end "+
		"of a container until the one with its new image runs, which is mostly the time of a pull; for -kind cloneset, upgrade and rollout")
	flag.IntVar(&s.rounds, "rounds", 5,
		"how often the contenders of -kind cloneset create, recreate and remove their Pods, those of -kind gates create and remove them, "+
			"or those of -kind rollout release, "+
			"taking turns; the median counts")
	flag.Func("k8s-args", "a further flag of a component, as in kube-apiserver:--profiling; may be repeated", func(arg string) error {
		s.components = append(s.components, arg)
		return nil
	})
	flag.IntVar(&s.sets, "sets", 300, "SidecarSets, for -kind load")
	flag.IntVar(&s.allPods, "all", 20000, "Pods in the cluster, for -kind screens")
	flag.Float64Var(&s.rate, "rate", 100, "new Pods a second, for -kind load and spread")
	flag.StringVar(&s.profile, "profile", "",
		"file for the manager's CPU profile while Pods are created, and with .server at its end for the API server's, for -kind load")
	flag.IntVar(&s.own, "own", 0, "Pods in CloneSets beside the foreign ones, for -kind foreign")
	flag.DurationVar(&s.watch, "watch", time.Minute, "how long a manager is watched from its start, for -kind foreign and scale")
	flag.StringVar(&s.memoryLimit, "memory-limit", "900MiB", "GOMEMLIMIT of the manager, as the manifests set it; empty for none; "+
		"for -kind foreign and scale")
	flag.Func("points", "sizes that -kind scale measures in each dimension, as in 100,300,1000; else those of the dimension", s.setPoints)
	flag.Parse()
	if s.kind == "daemonset" {
		s.nodes = s.pods
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// setPoints reads sizes.
func (s *settings) setPoints(arg string) error {
	for field := range strings.SplitSeq(arg, ",") {
		size, err := strconv.Atoi(field)
		if err != nil || size <= 0 {
			return errors.Join(fmt.Errorf("%q is no number above zero", field), err)
		}
		s.points = append(s.points, size)
	}
	slices.Sort(s.points)
	return nil
}

func (s settings) clusterArgs() []string {
	var args []string
	if s.terse {
		args = append(args, "--sim-terse")
	}
	if s.kind == "cloneset" || s.kind == gatesKind || s.kind == "rollout" || s.kind == "upgrade" {
		args = append(args, "--sim-start", s.start.String(), "--sim-restart", s.restart.String(), "--sim-jitter", "0.5", "--sim-stop", "1s")
	}
	if s.profile != "" {
		args = append(args, "--k8s-args", "kube-apiserver:--profiling=true")
	}
	for _, arg := range s.components {
		args = append(args, "--k8s-args", arg)
	}
	return args
}

func run(ctx context.Context, s settings) (err error) {
	switch s.kind {
	case "injection":
		return runInjection(ctx, s)
	case "load":
		return runLoad(ctx, s)
	case "spread":
		return runSpread(ctx, s)
	case "upgrade":
		return runUpgrade(ctx, s)
	case "rollout":
		return runRollout(ctx, s)
	case "screens":
		return runScreens(ctx, s)
	case "scale":
		return runScale(ctx, s)
	case "foreign":
		return runForeign(ctx, s)
	case daemonsKind:
		return runDaemons(ctx, s)
	}
	b, err := s.bringUp(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(ctx)) }()
	undisturbed, err := b.neighbour.during(ctx, func() { _ = sleep(ctx, neighbourAlone) })
	if err != nil {
		return err
	}
	if s.kind == gatesKind {
		stop, err := b.openGates(ctx)
		if err != nil {
			return err
		}
		defer stop()
	}
	results, err := b.measureAll(ctx, b.chosen)
	if err != nil {
		return err
	}
	if s.idle > 0 && s.kind == "cloneset" {
		rest, err := b.rest(ctx)
		results = append(results, rest...)
		if err != nil {
			return fmt.Errorf("measuring at rest: %w", err)
		}
	}
	compare(b.all[0], results)
	report := summary{Pods: s.pods, Nodes: s.nodes, Processor: processor(), Results: results, Neighbour: undisturbed}
	report.print(os.Stdout)
	return s.store(report)
}
