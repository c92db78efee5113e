package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// handling is the name of the manager's histogram of how long it takes over new Pods.
const handling = "kruise_pod_admission_seconds"

// bucket is a bucket of a histogram: how many observations were not above a bound, in seconds.
type bucket struct {
	bound float64
	count float64
}

// histogram is one of Prometheus, its buckets in the order of their bounds.
type histogram []bucket

// scrape reads a histogram from where a process serves its metrics: the one with these labels, which are written name="value",.
func scrape(ctx context.Context, address, name, labels string) (histogram, error) {
	metrics, err := fetch(ctx, http.DefaultClient, "http://"+address+"/metrics")
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return parseHistogram(bytes.NewReader(metrics), name, labels)
}

// fetch reads what is at an address.
func fetch(ctx context.Context, from *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := from.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return content, err
}

// gauge reads a metric without labels from metrics in their text format.
func gauge(metrics []byte, name string) (float64, error) {
	for line := range bytes.Lines(metrics) {
		if value, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			return strconv.ParseFloat(string(bytes.TrimSpace(value)), 64)
		}
	}
	return 0, fmt.Errorf("the metrics have no %s", name)
}

// sumOf adds up the values of a metric whose labels have some text.
func sumOf(metrics []byte, name, labels string) (sum float64, err error) {
	for line := range strings.Lines(string(metrics)) {
		if !strings.HasPrefix(line, name+"{") || !strings.Contains(line, labels) {
			continue
		}
		var value float64
		if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &value); err != nil {
			return 0, fmt.Errorf("reading %q: %w", line, err)
		}
		sum += value
	}
	return sum, nil
}

// parseHistogram reads a histogram from metrics in their text format.
func parseHistogram(metrics io.Reader, name, labels string) (histogram, error) {
	var h histogram
	lines := bufio.NewScanner(metrics)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name+`_bucket{`+labels+`le="`)
		if !ok {
			continue
		}
		bound, count, _ := strings.Cut(rest, `"} `)
		b := bucket{}
		var err error
		if b.bound, err = strconv.ParseFloat(bound, 64); err != nil {
			return nil, fmt.Errorf("reading %q: %w", lines.Text(), err)
		}
		if b.count, err = strconv.ParseFloat(count, 64); err != nil {
			return nil, fmt.Errorf("reading %q: %w", lines.Text(), err)
		}
		h = append(h, b)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	if len(h) == 0 {
		return nil, fmt.Errorf("the metrics have no %s with labels %q", name, labels)
	}
	slices.SortFunc(h, func(a, b bucket) int {
		if a.bound < b.bound {
			return -1
		}
		return 1
	})
	return h, nil
}

// since returns what was observed after an earlier state of the same histogram.
func (h histogram) since(earlier histogram) histogram {
	out := slices.Clone(h)
	for i := range out {
		if i < len(earlier) {
			out[i].count -= earlier[i].count
		}
	}
	return out
}

// seconds returns the time that a share of the observations did not exceed, as if those of a bucket were spread evenly over it.
func (h histogram) seconds(share float64) float64 {
	if len(h) == 0 || h[len(h)-1].count == 0 {
		return 0
	}
	rank := share * h[len(h)-1].count
	below := bucket{}
	for _, b := range h {
		if b.count >= rank {
			if math.IsInf(b.bound, 1) || b.count == below.count {
				return below.bound
			}
			return below.bound + (b.bound-below.bound)*(rank-below.count)/(b.count-below.count)
		}
		below = b
	}
	return below.bound
}

// most returns the bound that no observation exceeded; 0 without observations. It is the greatest bound also where one exceeded that.
func (h histogram) most() (bound float64) {
	for _, b := range h {
		all := h[len(h)-1].count
		if all == 0 || math.IsInf(b.bound, 1) {
			break
		}
		if bound = b.bound; b.count == all {
			break
		}
	}
	return bound
}

func (h histogram) quantiles() quantiles {
	return quantiles{P50: 1000 * h.seconds(0.5), P99: 1000 * h.seconds(0.99)}
}

// profile stores the CPU profiles of the manager and of the API server over some time, the latter in a second file with .server at its end.
// It returns at once; what it waits for is told on the channel.
func (w admissionWorld) profile(ctx context.Context, file string, over time.Duration) <-chan error {
	done := make(chan error, 1)
	go func() {
		server := make(chan error, 1)
		go func() {
			authorized, err := rest.HTTPClientFor(w.Config)
			if err == nil {
				err = storeProfile(ctx, authorized, w.Config.Host, file+".server", over)
			}
			server <- err
		}()
		err := storeProfile(ctx, http.DefaultClient, "http://"+pprofAddress, file, over)
		done <- errors.Join(err, <-server)
	}()
	return done
}

func storeProfile(ctx context.Context, from *http.Client, host, file string, over time.Duration) error {
	url := fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", host, max(1, int(over.Seconds())))
	content, err := fetch(ctx, from, url)
	if err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	return os.WriteFile(file, content, 0o644)
}
