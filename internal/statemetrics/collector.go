// Package statemetrics serves what the specs and statuses of workloads say as metrics: how many Pods each one is to have and has, how far
// its update is, what it waits for. The manager that leads reads them from its cache when it is scraped, so an object has series for
// exactly as long as the object is there, and a manager that does not lead serves none.
//
//	collector.go   the collector, its limit, and the metrics about itself
//	samples.go     how the metrics of an object are put together
//	table.go       what a table of metrics is, one for each kind
//	apps.go        the metrics of the kinds of apps.kruise.io and policy.kruise.io
//	jobs.go        those of jobs, and of what holds no Pods itself
//	rollouts.go    the metrics of Rollouts
package statemetrics

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// DefaultLimit is how many objects have series, unless a flag says otherwise: 25 series each at the most are 125,000.
	DefaultLimit = 5000
	// readTimeout bounds the reading of one kind, which waits for nothing but a cache that is being filled.
	readTimeout = 2 * time.Second
)

// Options are what a Collector works with.
type Options struct {
	// Reader is the cache of the manager.
	Reader client.Reader
	// Leads is closed when the manager leads.
	Leads <-chan struct{}
	// Limit is how many objects have series. Of more, the first ones by kind, namespace and name have.
	Limit int
	Now   func() time.Time
}

// Collector makes the metrics.
type Collector struct {
	Options
	kinds    []Kind
	families map[string]*prometheus.Desc
	read     *prometheus.Desc
	leftOut  *prometheus.Desc
}

// New returns a collector of the metrics of some kinds.
func New(o Options, kinds ...Kind) *Collector {
	c := &Collector{
		Options: o, kinds: kinds, families: map[string]*prometheus.Desc{},
		read: prometheus.NewDesc("kruise_state_metrics_up",
			"1 if the objects of a kind were read for the state metrics of this scrape, 0 if they could not be.", []string{"kind"}, nil),
		leftOut: prometheus.NewDesc("kruise_state_metrics_objects_left_out",
			"Objects without state metrics because of --state-metrics-limit.", nil, nil),
	}
	for _, k := range kinds {
		for _, f := range k.families {
			c.families[f.name] = prometheus.NewDesc(f.name, f.help, f.labels, nil)
		}
	}
	return c
}

// Describe sends what can be served.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range c.families {
		to <- desc
	}
	to <- c.read
	to <- c.leftOut
}

// Collect sends the metrics of all objects, if the manager leads.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	select {
	case <-c.Leads:
	default:
		return
	}
	left, out := c.Limit, 0
	for _, k := range c.kinds {
		objects, err := c.list(k)
		up := 1.0
		if err != nil {
			up = 0 // the next scrape tries again, and this one tells all else
		}
		to <- prometheus.MustNewConstMetric(c.read, prometheus.GaugeValue, up, k.kind)
		served := objects[:min(left, len(objects))]
		left, out = left-len(served), out+len(objects)-len(served)
		for _, o := range served {
			c.send(k, o, to)
		}
	}
	to <- prometheus.MustNewConstMetric(c.leftOut, prometheus.GaugeValue, float64(out))
}

func (c *Collector) send(k Kind, o client.Object, to chan<- prometheus.Metric) {
	for _, s := range k.samples(o, c.Now()) {
		metric, err := prometheus.NewConstMetric(c.families[s.name], prometheus.GaugeValue, s.value, s.labels...)
		if err != nil { // labels that are no UTF-8, which the API server does not take
			metric = prometheus.NewInvalidMetric(c.families[s.name], err)
		}
		to <- metric
	}
}

// list returns the objects of a kind by namespace and name. They are those of the cache, which nobody may change.
func (c *Collector) list(k Kind) (out []client.Object, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	list := k.list()
	if err := c.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing %T: %w", list, err)
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			out = append(out, object)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b client.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out, err
}
