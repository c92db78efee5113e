package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// perForeign compares the footprints with and without foreign Pods, by kind of start.
func perForeign(all []footprint) map[string]bytesPerPod {
	out := map[string]bytesPerPod{}
	for _, f := range all {
		base := slices.IndexFunc(all, func(b footprint) bool { return b.Start == f.Start && b.Foreign == 0 && b.Own == f.Own })
		if f.Foreign == 0 || base < 0 {
			continue
		}
		each := func(with, without float64) float64 { return (with - without) * (1 << 20) / float64(f.Foreign) }
		b := all[base]
		out[f.Start] = bytesPerPod{
			Peak: each(f.PeakMiB, b.PeakMiB), Rest: each(f.RestMiB, b.RestMiB), Live: each(f.LiveMiB, b.LiveMiB),
		}
	}
	return out
}

func (r foreignPods) print(to io.Writer) {
	limit := r.MemoryLimit
	if limit == "" {
		limit = "none"
	}
	fmt.Fprintf(to, "%d nodes, each manager watched for %.0f s from its start, GOMEMLIMIT %s, %s\n\n", r.Nodes, r.WatchSeconds, limit,
		r.Processor)
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "start\tforeign Pods\town Pods\tready s\tCPU s till ready\tCPU s\tpeak MiB till ready\tpeak MiB\tat rest MiB\t"+
		"heap in use MiB\tallocated MiB\tafter collection MiB\twrites\t")
	for _, f := range r.Footprints {
		fmt.Fprintf(table, "%s\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t%.1f\t%d\t\n", f.Start, f.Foreign, f.Own,
			f.ReadySeconds, f.ReadyCPUSeconds, f.CPUSeconds, f.ReadyPeakMiB, f.PeakMiB, f.RestMiB, f.HeapInUseMiB, f.HeapMiB, f.LiveMiB,
			f.Writes)
	}
	_ = table.Flush() // a terminal that is gone can't be told
	fmt.Fprintln(to)
	for _, start := range []string{afterStop, afterCrash} {
		if b, measured := r.PerForeign[start]; measured {
			fmt.Fprintf(to, "%s, bytes for a foreign Pod: at the peak %.0f, at rest %.0f, of the heap after a collection %.0f\n", start,
				b.Peak, b.Rest, b.Live)
		}
	}
	for _, f := range r.Footprints {
		for _, request := range slices.Sorted(maps.Keys(f.Requests)) {
			if verb, _, _ := strings.Cut(request, " "); verb != "get" && verb != "list" {
				fmt.Fprintf(to, "%s with %d foreign Pods, %d own: %d %s\n", f.Start, f.Foreign, f.Own, f.Requests[request], request)
			}
		}
	}
}
