package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// site is a cluster with a manager beside it.
type site struct {
	*cluster.Cluster
	dir     string
	audit   string
	manager *cluster.Manager
}

// bench measures contenders in a cluster, some of them in several.
type bench struct {
	settings
	// dir holds all that the sites keep.
	dir string
	// sites are the hub, in which the objects of all contenders are, and its members.
	sites []*site
	// neighbour is another client of the hub.
	neighbour *neighbour
	// beside is a small workload of the contender that is measured; nil where there is none.
	beside *beside
	// all are the contenders of the kind, and chosen those that are measured.
	all, chosen []contender
}

// hub is the cluster that every contender is in.
func (b *bench) hub() *site { return b.sites[0] }

// of returns the clusters that a contender is in.
func (b *bench) of(c contender) []*site { return b.sites[:max(c.clusters, 1)] }

// bringUp brings up the clusters that the contenders are in, with a manager in each, all of them warm and at rest.
func (s settings) bringUp(ctx context.Context) (_ *bench, err error) {
	b := &bench{settings: s}
	native := 0
	if b.all, err = contenders(s.kind, func() []int { return []int{native} }, b.managers); err != nil {
		return nil, err
	}
	b.chosen = slices.DeleteFunc(slices.Clone(b.all), func(c contender) bool { return s.only != "" && c.name != s.only })
	if b.dir, err = os.MkdirTemp("", "kruise-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.end(ctx))
		}
	}()
	for i := range b.number() {
		if err := b.addSite(ctx, i); err != nil {
			return b, err
		}
	}
	native, err = b.hub().ProcessOf(ctx, "kube-controller-manager")
	return b, err
}

// number is how many clusters the contenders are in.
func (b *bench) number() int {
	n := 1
	for _, c := range b.chosen {
		n = max(n, c.clusters)
	}
	return n
}

// addSite brings up one more cluster, of which the first is the hub, and all others are its members.
func (b *bench) addSite(ctx context.Context, number int) error {
	name := memberName(number)
	dir := filepath.Join(b.dir, name)
	at := &site{dir: dir, audit: filepath.Join(dir, "cluster", "logs", "audit.log")}
	one := &bench{settings: b.settings, sites: []*site{at}}
	if number > 0 {
		one.pods, one.nodes = b.pods/clusters, max(b.nodes/clusters, 1)
	}
	var err error
	o := cluster.Options{Dir: filepath.Join(dir, "cluster"), Nodes: one.nodes, Args: b.clusterArgs(), Log: os.Stderr}
	if at.Cluster, err = cluster.Up(ctx, o); err != nil {
		return err
	}
	b.sites = append(b.sites, at)
	if one.neighbour, err = newNeighbour(ctx, at.Config); err != nil {
		return err
	}
	if number == 0 {
		b.neighbour = one.neighbour
	}
	start := at.StartManager
	if number == 0 && b.number() > 1 {
		start = at.StartHub
	}
	if at.manager, err = start(ctx, at.options()); err != nil {
		return err
	}
	if number > 0 {
		if err := b.hub().Register(ctx, at.Cluster, name); err != nil {
			return err
		}
	}
	if err := one.warmUp(ctx); err != nil {
		return fmt.Errorf("in %s: %w", name, err)
	}
	return one.awaitCalm(ctx)
}

// memberName is the name of a cluster, of which the first is the hub.
func memberName(number int) string {
	if number == 0 {
		return "hub"
	}
	return fmt.Sprintf("member-%d", number)
}

func (s *site) options(env ...string) cluster.ManagerOptions {
	return cluster.ManagerOptions{Dir: filepath.Join(s.dir, "manager"), Env: env}
}

// restart ends the manager as a crash would, and starts another one at its address: elsewhere, it would have to tell the API
// server of it.
func (s *site) restart(ctx context.Context) (err error) {
	s.manager.Kill()
	s.manager, err = s.StartManager(ctx, s.options("WEBHOOK_PORT="+s.manager.WebhookPort()))
	return err
}

// managers are the processes of the managers of the first clusters.
func (b *bench) managers(number int) []int {
	var pids []int
	for _, s := range b.sites[:number] {
		pids = append(pids, s.manager.PID())
	}
	return pids
}

// end ends all clusters, and removes what they kept.
func (b *bench) end(ctx context.Context) (err error) {
	for _, s := range b.sites {
		if s.manager != nil {
			s.manager.Stop()
		}
		err = errors.Join(err, s.Down(context.WithoutCancel(ctx)))
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}
