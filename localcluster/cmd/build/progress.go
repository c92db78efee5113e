package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// manyPackages not yet compiled are worth an announcement.
	manyPackages = 100
	// packagesPerMinute is how many packages one processor of a common machine compiles: the whole of Kubernetes takes two of them seven
	// minutes.
	packagesPerMinute = 190
	// Intervals of the line that tells how far it is: on a terminal the line is written over.
	terminalInterval = time.Second
	logInterval      = 10 * time.Second
	keptOutput       = 4096
)

// progress is told by the compiler which packages it compiles, and tells the user.
type progress struct {
	out      io.Writer
	terminal bool
	target   target
	total    int
	start    time.Time

	mu   sync.Mutex
	done int
	last []byte // the end of the compiler's output, for errors
}

func newProgress(out *os.File, t target, total int) *progress {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &progress{out: out, terminal: terminal, target: t, total: total, start: time.Now()}
}

// begin announces what takes long.
func (p *progress) begin(processors int) {
	if p.total < manyPackages {
		return
	}
	minutes := max(1, (p.total+packagesPerMinute*processors/2)/(packagesPerMinute*processors))
	fmt.Fprintf(p.out, "Compiling %s: %s, %d packages. This takes about %d min with %d processors, the first time only.\n",
		p.target.name, p.target.content, p.total, minutes, processors)
}

// Write takes the compiler's output, a line for each package.
func (p *progress) Write(output []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += bytes.Count(output, []byte("\n"))
	p.last = append(p.last, output...)
	p.last = p.last[max(0, len(p.last)-keptOutput):]
	return len(output), nil
}

// tick tells how far it is, again and again, until the function that it returns is called.
func (p *progress) tick() (stop func()) {
	interval := logInterval
	if p.terminal {
		interval = terminalInterval
	}
	ticker := time.NewTicker(interval)
	ended := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-ticker.C:
				p.show()
			case <-ended:
				return
			}
		}
	})
	return func() {
		ticker.Stop()
		close(ended)
		group.Wait()
	}
}

func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	what := fmt.Sprintf("%d of %d packages", min(p.done, p.total), p.total)
	if p.done >= p.total {
		what = "linking"
	}
	before, after := "", "\n"
	if p.terminal {
		before, after = "\r\x1b[K", ""
	}
	fmt.Fprintf(p.out, "%s%6.1fs  %s: %s%s", before, time.Since(p.start).Seconds(), p.target.name, what, after)
}

// end tells that the program is compiled.
func (p *progress) end() {
	before := ""
	if p.terminal {
		before = "\r\x1b[K"
	}
	fmt.Fprintf(p.out, "%s%6.1fs  %s\n", before, time.Since(p.start).Seconds(), p.target.name)
}

// rest returns the end of the compiler's output.
func (p *progress) rest() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}
