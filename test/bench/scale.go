package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// The phases that workloads are led through, by the names that figures have.
const creating, updatingInPlace, recreating, scalingIn = "create", "in place", "recreate", "scale in"

// dimension is one way in which a cluster grows, and what is measured in it.
type dimension struct {
	// name is that of its file and of -only; axis says what is counted.
	name, title, axis string
	// sizes are measured if none are asked for.
	sizes []int
	// measure measures all sizes, and tells of each.
	measure func(ctx context.Context, s settings, sizes []int, tell func(sized)) error
	charts  []chartOf
}

// sized is what was measured at one size of a dimension.
type sized struct {
	Size int `json:"size"`
	// Phases are those of workloads, Start is that of a manager among foreign Pods, and Load the admission of Pods among SidecarSets.
	Phases []measurement `json:"phases,omitempty"`
	Start  *footprint    `json:"start,omitempty"`
	Load   *load         `json:"load,omitempty"`
}

func dimensions() []dimension {
	return []dimension{
		{
			name: "pods", title: "Pods of one CloneSet", axis: "Pods of the CloneSet", sizes: []int{30, 100, 300, 1000},
			measure: measurePods, charts: append(chartsOfPhases(), chartsOfWaits()...),
		},
		{
			name: "clonesets", title: "CloneSets of 4 Pods", axis: "CloneSets", sizes: []int{10, 30, 100, 300},
			measure: measureCloneSets, charts: chartsOfPhases(),
		},
		{
			name: "foreign", title: "Pods that are not Kruise's", axis: "foreign Pods", sizes: []int{1000, 3000, 10000},
			measure: measureForeign, charts: chartsOfStarts(),
		},
		{
			name: "nodes", title: "Nodes of one DaemonSet", axis: "nodes", sizes: []int{10, 30, 100, 300},
			measure: measureNodes, charts: chartsOfPhases(),
		},
		{
			name: "sidecarsets", title: "SidecarSets, three of which select each new Pod", axis: "SidecarSets",
			sizes: []int{3, 30, 90, 300}, measure: measureSidecarSets, charts: chartsOfLoads(),
		},
	}
}

// runScale measures how cost grows along each dimension. What is measured is stored after each, so that a run that is broken off was not
// for nothing.
func runScale(ctx context.Context, s settings) error {
	result := growth{Processor: processor(), Processors: runtime.NumCPU(), Nodes: s.nodes}
	names := []string{}
	for _, d := range dimensions() {
		names = append(names, d.name)
		if s.only != "" && d.name != s.only {
			continue
		}
		sizes := d.sizes
		if len(s.points) > 0 {
			sizes = s.points
		}
		grown := grownIn{Name: d.name, Title: d.title, Axis: d.axis}
		err := d.measure(ctx, s, sizes, func(one sized) {
			fmt.Fprintf(os.Stderr, "%s: %d measured\n", d.name, one.Size)
			grown.Points = append(grown.Points, one)
		})
		grown.draw(d.charts)
		result.Dimensions = append(result.Dimensions, grown)
		if err := errors.Join(err, s.store(result)); err != nil {
			return fmt.Errorf("measuring %s: %w", d.name, err)
		}
		grown.print(os.Stdout)
	}
	if len(result.Dimensions) == 0 {
		return fmt.Errorf("-only is %q, want one of %s", s.only, strings.Join(names, ", "))
	}
	return nil
}

// walker leads workloads of one size through their phases.
type walker func(*bench, contender, int) ([]measurement, error)

// walkSizes leads a kind of workload through its phases at each size, each time with a manager that has just started, so that the most
// memory that it has had is of that size alone.
func walkSizes(ctx context.Context, s settings, sizes []int, walk walker, tell func(sized)) error {
	b, err := s.bringUp(ctx)
	if err != nil {
		return err
	}
	for _, size := range sizes {
		if err = b.hub().restart(ctx); err != nil {
			break
		}
		if err = b.awaitCalm(ctx); err != nil {
			break
		}
		var phases []measurement
		if phases, err = walk(b, b.chosen[0], size); err != nil {
			break
		}
		tell(sized{Size: size, Phases: phases})
	}
	return errors.Join(err, b.end(ctx))
}

// ofCloneSets are settings for CloneSets of so many Pods together. Their containers start soon, so that seconds are those of controllers.
func (s settings) ofCloneSets(pods int) settings {
	s.kind, s.only, s.start, s.pods = "cloneset", "CloneSet", 300*time.Millisecond, pods
	return s
}

func measurePods(ctx context.Context, s settings, sizes []int, tell func(sized)) error {
	return walkSizes(ctx, s.ofCloneSets(slices.Max(sizes)), sizes, func(b *bench, c contender, size int) ([]measurement, error) {
		if err := b.putBeside(ctx, c, fmt.Sprintf("bench-beside-%d", size)); err != nil {
			return nil, err
		}
		defer b.takeBeside()
		return b.walkOne(ctx, c, size)
	}, tell)
}

// walkOne leads one workload of so many Pods through the phases.
func (b *bench) walkOne(ctx context.Context, c contender, pods int) ([]measurement, error) {
	b.pods = pods
	w, err := b.workload(ctx, c, fmt.Sprintf("bench-scale-%d", pods))
	if err != nil {
		return nil, err
	}
	return b.walk(ctx, c, w, []step{
		b.create(w),
		{name: updatingInPlace, want: int32(pods), change: func() { w.inPlace(0); w.image(releasedImage) }},
		b.recreate(w),
		b.scaleIn(w),
	})
}

// measureNodes has a cluster of its own for each size: nodes can't be taken away.
func measureNodes(ctx context.Context, s settings, sizes []int, tell func(sized)) error {
	for _, size := range sizes {
		s.kind, s.only, s.pods, s.nodes = "daemonset", "AdvancedDaemonSet", size, size
		err := walkSizes(ctx, s, []int{size}, func(b *bench, c contender, size int) ([]measurement, error) {
			return b.walkOne(ctx, c, size)
		}, tell)
		if err != nil {
			return err
		}
	}
	return nil
}

func measureCloneSets(ctx context.Context, s settings, sizes []int, tell func(sized)) error {
	all := s.ofCloneSets(slices.Max(sizes) * fleetReplicas)
	return walkSizes(ctx, all, sizes, func(b *bench, c contender, size int) ([]measurement, error) {
		f := fleet{bench: b, contender: c, namespace: fmt.Sprintf("bench-fleet-%d", size), size: size}
		return f.walk(ctx)
	}, tell)
}

// measureForeign starts managers among more and more foreign Pods; the first among none.
func measureForeign(ctx context.Context, s settings, sizes []int, tell func(sized)) (err error) {
	w, err := s.foreignWorld(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.end(ctx)) }()
	for _, size := range append([]int{0}, sizes...) {
		if err := w.setForeign(ctx, size); err != nil {
			return err
		}
		f, err := w.watchStart(ctx, afterStop)
		if err != nil {
			return err
		}
		tell(sized{Size: size, Start: &f})
	}
	return nil
}

// measureSidecarSets has a cluster of its own for each size, which is a number of which each Pod is selected by as many.
func measureSidecarSets(ctx context.Context, s settings, sizes []int, tell func(sized)) error {
	for _, size := range sizes {
		s.sets = max(1, size/perPod) * perPod
		one := load{SidecarSets: s.sets, Pods: s.pods, Rate: s.rate}
		if err := s.onBareCluster(ctx, func(w admissionWorld) error { return w.measure(ctx, s, &one) }); err != nil {
			return err
		}
		tell(sized{Size: s.sets, Load: &one})
	}
	return nil
}

// updated returns how many Pods of a CloneSet have its template and are available, once its status speaks of it as it is.
func updated(set *v1beta1.CloneSet) int32 {
	if set.Status.ObservedGeneration != set.Generation {
		return 0
	}
	return set.Status.UpdatedAvailableReplicas
}
