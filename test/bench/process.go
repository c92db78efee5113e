package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// cpuSeconds returns the CPU time that processes have used together.
func cpuSeconds(pids []int) (sum float64, err error) {
	for _, pid := range pids {
		used, err := cluster.CPUSeconds(pid)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// peakMiB returns the most memory that one of some processes has had.
func peakMiB(pids []int) (most float64, err error) {
	for _, pid := range pids {
		peak, err := peakOf(pid)
		if err != nil {
			return 0, err
		}
		most = max(most, peak)
	}
	return most, nil
}

// peakOf returns the most memory that a process has had, residentOf what it has now, in MiB.
func peakOf(pid int) (float64, error)     { return memoryOf(pid, "VmHWM:") }
func residentOf(pid int) (float64, error) { return memoryOf(pid, "VmRSS:") }

func memoryOf(pid int, which string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == which {
			kib, err := strconv.ParseFloat(fields[1], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("process %d does not tell its memory", pid)
}

// processor names the machine's processor.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// mayOpen says what to do if this process may not have so many files open. Go has raised the soft limit to the hard one.
func mayOpen(files int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("reading the limit of open files: %w", err)
	}
	if limit.Cur < uint64(files) {
		return fmt.Errorf("%d files may be open at once, and %d are needed: raise the hard limit (ulimit -Hn)", limit.Cur, files)
	}
	return nil
}
