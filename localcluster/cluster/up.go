package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/seed-69ecc383/kruise/localcluster/component"
	"github.com/seed-69ecc383/kruise/localcluster/process"
)

// Progress is told what is being done, in words for a person who waits.
type Progress func(step string)

// Change says what is asked of a cluster, given what was asked before.
type Change func(*Config) error

// startTimeout is how long one component may take to become ready; it is generous for machines with better things to do.
const startTimeout = 3 * time.Minute

// Up makes the cluster in dir be as change asks, and returns when it can be used: the API answers, every component is
// healthy and every node is Ready.
func Up(ctx context.Context, dir string, change Change, progress Progress) (*Cluster, error) {
	unlock, err := Lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c, created, err := OpenOrCreate(dir)
	if err != nil {
		return nil, err
	}
	before := c.state.Config
	if err := change(&c.state.Config); err != nil {
		return nil, err
	}
	if !created && c.state.Config.Bare != before.Bare {
		return nil, fmt.Errorf("the cluster in %s was made with --bare=%t: take it down first", c.Dir, before.Bare)
	}
	for attempt := 1; ; attempt++ {
		err = c.converge(ctx, progress)
		// Somebody else may have taken a port between our choosing and using it. A cluster nobody knows yet can move.
		if err == nil || !created || attempt == 3 || !portTaken(err) {
			return c, err
		}
		progress("Choosing other ports")
		if err := stopAll(c.Home()); err != nil {
			return nil, err
		}
		if c.state.Ports, err = choosePorts(); err != nil {
			return nil, err
		}
	}
}

func portTaken(err error) bool {
	var died *DiedError
	return errors.As(err, &died) && strings.Contains(died.Log, "address already in use")
}

// converge does whatever is missing between what is and what Config asks for.
func (c *Cluster) converge(ctx context.Context, progress Progress) error {
	for _, prepare := range []func() error{c.preflight, c.save, c.ensureCredentials, c.ensureConfig} {
		if err := prepare(); err != nil {
			return err
		}
	}
	var watched watch
	core, rest := c.components()[:2], c.components()[2:]
	if err := c.ensureRunning(ctx, core, &watched, progress); err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	progress("Waiting for the API server")
	if err := watched.until(ctx, func(ctx context.Context) (bool, string) { return apiReady(ctx, client) }); err != nil {
		return err
	}
	if c.state.Config.Bare {
		return nil
	}
	if err := c.ensureRunning(ctx, rest, &watched, progress); err != nil {
		return err
	}
	return c.populate(ctx, client, &watched, progress)
}

// populate fills a running control plane with nodes and what they need, and waits until all of it works.
func (c *Cluster) populate(ctx context.Context, client kubernetes.Interface, watched *watch, progress Progress) error {
	if err := applyObjects(ctx, client, objects()); err != nil {
		return err
	}
	if err := createSimulatedNodes(ctx, client, c.state.Config.Nodes); err != nil {
		return err
	}
	progress("Waiting for the controllers and the scheduler")
	probe, err := c.probes()
	if err != nil {
		return err
	}
	for _, check := range []readiness{
		probe.healthy(component.ControllerManager, c.state.Ports.ControllerManager),
		probe.healthy(component.Scheduler, c.state.Ports.Scheduler),
		func(ctx context.Context) (bool, string) { return serviceAccountReady(ctx, client) },
	} {
		if err := watched.until(ctx, check); err != nil {
			return err
		}
	}
	progress(fmt.Sprintf("Waiting for %d simulated nodes", c.state.Config.Nodes))
	if err := watched.until(ctx, func(ctx context.Context) (bool, string) { return nodesReady(ctx, client) }); err != nil {
		return err
	}
	return c.ensureRealNodes(ctx, client, watched, progress)
}

// ensureRunning starts the named components that do not run, and restarts those that run with other flags.
func (c *Cluster) ensureRunning(ctx context.Context, names []string, watched *watch, progress Progress) error {
	for _, name := range names {
		spec, err := c.spec(ctx, name)
		if err != nil {
			return err
		}
		if err := c.ensureProcess(spec, watched, progress); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) ensureProcess(spec process.Spec, watched *watch, progress Progress) error {
	home := c.Home()
	watched.home = home
	watched.names = append(watched.names, spec.Name)
	if _, alive := home.Alive(spec.Name); alive {
		if c.runsAs(spec) {
			return nil
		}
		progress("Restarting " + spec.Name + " with other flags")
		if err := home.Stop(spec.Name); err != nil {
			return err
		}
	} else {
		progress("Starting " + spec.Name)
	}
	if err := writeFile(c.fingerprintFile(spec.Name), fingerprint(spec)); err != nil {
		return err
	}
	_, err := home.Start(spec)
	return err
}

// stopAll ends every process that has left traces in a home.
func stopAll(home process.Home) error {
	names, err := home.Names()
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range names {
		failed = append(failed, home.Stop(name))
	}
	return errors.Join(failed...)
}

// watch waits for conditions while it minds the processes that are to bring them about.
type watch struct {
	home  process.Home
	names []string
}

// readiness tells whether something is ready, and if not, what is missing.
type readiness func(ctx context.Context) (ready bool, missing string)

// DiedError says that a component ended when it should not.
type DiedError struct {
	Name string
	Log  string // the last lines it wrote
}

func (e *DiedError) Error() string {
	return fmt.Sprintf("%s ended; the last lines of its log:\n%s", e.Name, e.Log)
}

// until returns when check is satisfied, or with the log of a component that died meanwhile.
func (w *watch) until(ctx context.Context, check readiness) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		ready, missing := check(ctx)
		if ready {
			return nil
		}
		for _, name := range w.names {
			if _, alive := w.home.Alive(name); !alive {
				return w.died(name)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting: %w: %s", ctx.Err(), missing)
		case <-time.After(25 * time.Millisecond):
		}
	}
}

func (w *watch) died(name string) error {
	log, err := process.Tail(w.home.LogFile(name), 20)
	if err != nil {
		return err
	}
	return &DiedError{Name: name, Log: log}
}
