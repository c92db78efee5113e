package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// screen shows a rollout: on a terminal as a table that changes, elsewhere as lines when something changes and the table at the end.
type screen struct {
	out      *os.File
	terminal bool
	began    time.Time
	// lines is the height of the table on the terminal, to be drawn over.
	lines int
	// story lists what the plan did, the latest last; counts is the last line of numbers.
	story  []string
	counts string
	table  string
	// origin holds the restarts that each Pod had before this step, by its UID; latest those that it had when it was last seen.
	origin, latest map[types.UID]int32
}

func newScreen(out *os.File) *screen {
	info, err := out.Stat()
	return &screen{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"}
}

func (s *screen) begin(title string) {
	fmt.Fprintf(s.out, "\n%s\n\n", title)
	s.began, s.lines, s.story, s.counts, s.table = time.Now(), 0, nil, "", ""
	s.origin, s.latest = s.latest, map[types.UID]int32{}
}

func (s *screen) show(counts string, pods []corev1.Pod, plans []string) {
	story := s.tell(plans)
	table := s.pods(pods)
	if s.terminal {
		if counts != s.counts || len(story) > 0 || table != s.table {
			s.draw(counts, table)
		}
	} else {
		for _, line := range story {
			fmt.Fprintf(s.out, "         %s\n", line)
		}
		if counts != s.counts {
			fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.began).Seconds(), counts)
		}
	}
	s.counts, s.table = counts, table
}

func (s *screen) end() {
	if !s.terminal {
		fmt.Fprintf(s.out, "\n%s", s.table)
	}
}

// tell adds what the manager's plans did to the story, and returns what is new in it.
func (s *screen) tell(plans []string) []string {
	var news []string
	for _, text := range plans {
		for _, line := range strings.Split(text, "\n") {
			line = strings.TrimSpace(line)
			verb, _, _ := strings.Cut(line, " ")
			if told := slices.Contains([]string{"create", "update", "delete"}, verb); told && !strings.HasSuffix(line, "in flight") {
				news = append(news, line)
			}
		}
	}
	s.story = append(s.story, news...)
	return news
}

// pods draws the table of Pods.
func (s *screen) pods(pods []corev1.Pod) string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "  POD\tREVISION\tIMAGE\tSTATE\tREADY\tNODE\tIP\tHOW")
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range pods {
		p := &pods[i]
		state := string(pod.State(p))
		if p.DeletionTimestamp != nil {
			state = "Terminating"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%v\t%s\t%s\t%s\n", p.Name, p.Labels[appsv1.ControllerRevisionHashLabelKey],
			p.Spec.Containers[0].Image, state, pod.IsReady(p), p.Spec.NodeName, p.Status.PodIP, s.how(p))
	}
	_ = table.Flush() // a strings.Builder does not fail
	return out.String()
}

// how says what became of a Pod in this step.
func (s *screen) how(p *corev1.Pod) string {
	restarts := pod.MaxRestarts(p)
	s.latest[p.UID] = restarts
	switch before, known := s.origin[p.UID]; {
	case !known:
		return "new"
	case restarts > before:
		return "updated in place"
	default:
		return ""
	}
}

// draw draws over what was drawn before.
func (s *screen) draw(counts, table string) {
	var out strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\x1b[J", s.lines)
	}
	fmt.Fprintf(&out, "  %s   %.1fs\n\n%s\n", counts, time.Since(s.began).Seconds(), table)
	const latest = 5
	for _, line := range s.story[max(0, len(s.story)-latest):] {
		fmt.Fprintf(&out, "  %s\n", line)
	}
	text := out.String()
	s.lines = strings.Count(text, "\n")
	fmt.Fprint(s.out, text)
}
