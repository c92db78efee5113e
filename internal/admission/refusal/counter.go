package refusal

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// maxSeries is how many series a metric has before further users are counted together, and seriesTTL how long one is served that
	// nothing is added to, such as that of an object that is gone.
	maxSeries = 1000
	seriesTTL = 24 * time.Hour
	// others is the user that stands for all further ones.
	others = "others"
)

// Counter counts refusals by what was refused and by who asked. A nil Counter counts nothing.
type Counter struct {
	metric *prometheus.CounterVec
	now    func() time.Time

	mu sync.Mutex
	// series are when the metric last counted a refusal, by the values of its labels.
	series map[[2]string]time.Time
}

// CounterOptions say what a Counter is called.
type CounterOptions struct {
	// Name, Help and What are the name of the metric, its description, and the label for what was refused.
	Name, Help, What string
	// Now is the clock.
	Now func() time.Time
}

// NewCounter returns a counter that the registry serves.
func NewCounter(registry prometheus.Registerer, o CounterOptions) (*Counter, error) {
	c := &Counter{
		metric: prometheus.NewCounterVec(prometheus.CounterOpts{Name: o.Name, Help: o.Help}, []string{o.What, "username"}),
		now:    o.Now, series: map[[2]string]time.Time{},
	}
	return c, registry.Register(c.metric)
}

// Add counts one refusal.
func (c *Counter) Add(what, user string) {
	if c == nil {
		return
	}
	now, one := c.now(), [2]string{what, user}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.series[one]; !known {
		maps.DeleteFunc(c.series, func(old [2]string, last time.Time) bool {
			return now.Sub(last) >= seriesTTL && c.metric.DeleteLabelValues(old[0], old[1])
		})
		if len(c.series) >= maxSeries {
			one[1] = others
		}
	}
	c.series[one] = now
	c.metric.WithLabelValues(one[0], one[1]).Inc()
}
