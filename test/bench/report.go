package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// summary is what a run has measured.
type summary struct {
	Pods      int           `json:"pods"`
	Nodes     int           `json:"nodes"`
	Processor string        `json:"processor"`
	Results   []measurement `json:"results"`
	// Neighbour is how many milliseconds the writes of another client take while nothing else is done.
	Neighbour quantiles `json:"neighbourMilliseconds"`
}

// notMeasured stands in tables for what was not measured.
const notMeasured = "-"

// atRest and restart are the phases in which nothing is to be written.
const atRest, restart = "at rest", "restart"

// compare fills in the ratios to the times of a contender.
func compare(first contender, results []measurement) {
	native := map[string]float64{}
	for _, m := range results {
		if m.Contender == first.name {
			native[m.Phase] = m.Seconds
		}
	}
	for i := range results {
		m := &results[i]
		if seconds := native[m.Phase]; m.Contender != first.name && seconds > 0 {
			m.Ratio = m.Seconds / seconds
		}
	}
}

func (s summary) print(to io.Writer) {
	fmt.Fprintf(to, "%d Pods on %d simulated nodes, maxUnavailable %s (of StatefulSets %s), %s\n\n", s.Pods, s.Nodes, maxUnavailable,
		fewUnavailable, s.Processor)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "contender\tphase\tseconds\tratio\tCPU s\tpeak MiB\twrites/Pod\treads/Pod\t409s\tunavailable\tPods\t"+
		"others' p50, p99 ms\tanswer p50, p99 ms\tpasses p99, longest ms\t")
	for _, m := range s.Results {
		ratio, about := "", ""
		if m.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", m.Ratio)
		}
		if m.Reckoned > 0 {
			about = "~"
		}
		if m.Phase == atRest || m.Phase == restart {
			fmt.Fprintf(table, "%s\t%s\t%.1f\t\t%.1f\t%.0f\t%.0f in all\t\t%d\t\t\t\t\t\t\n", m.Contender, m.Phase, m.Seconds,
				m.CPUSeconds,
				m.PeakMiB, m.WritesPerPod, m.Conflicts)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s%.1f\t%s\t%.1f\t%.0f\t%.2f\t%.3f\t%d\t%d\t%d\t", m.Contender, m.Phase, about, m.Seconds, ratio,
			m.CPUSeconds, m.PeakMiB, m.WritesPerPod, m.ReadsPerPod, m.Conflicts, m.MostUnavailable, m.MostPods)
		answer := notMeasured
		if m.Answer != nil {
			answer = fmt.Sprintf("%.0f, %.0f", m.Answer.P50, m.Answer.P99)
		}
		fmt.Fprintf(table, "%.1f, %.1f\t%s\t%.0f, %.0f\t\n", m.Neighbour.P50, m.Neighbour.P99, answer, m.PassP99, m.LongestPass)
	}
	_ = table.Flush() // a terminal that is gone can't be told
	fmt.Fprintf(to, "Others' writes take %.1f ms (p50) and %.1f ms (p99) while nothing is done.\n", s.Neighbour.P50, s.Neighbour.P99)
	for _, m := range s.Results {
		if len(m.Rounds) > 0 {
			fmt.Fprintf(to, "%s, %s, seconds of the rounds: %.1f\n", m.Contender, m.Phase, m.Rounds)
		}
	}
}
