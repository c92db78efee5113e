package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
)

// plans follows the plans in the manager's log.
type plans struct {
	lines *bufio.Reader
	// rest is the beginning of a line that is not written to its end yet.
	rest string
}

// followPlans begins at the end of the log.
func followPlans(log string) (*plans, error) {
	file, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	_, err = file.Seek(0, io.SeekEnd)
	return &plans{lines: bufio.NewReader(file)}, err
}

// next returns the plans for a workload that have been logged since.
func (p *plans) next(name string) ([]string, error) {
	var out []string
	for {
		text, err := p.lines.ReadString('\n')
		p.rest += text
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		var line struct {
			Message string `json:"msg"`
			Name    string `json:"name"`
			Plan    string `json:"plan"`
		}
		// Lines of other libraries are not JSON.
		if json.Unmarshal([]byte(p.rest), &line) == nil && line.Name == name && line.Plan != "" {
			out = append(out, line.Plan)
		}
		p.rest = ""
	}
}

// deeds returns what plans did.
func deeds(plans []string) []string {
	var out []string
	for _, text := range plans {
		for _, line := range strings.Split(text, "\n") {
			line = strings.TrimSpace(line)
			verb, _, _ := strings.Cut(line, " ")
			if told := slices.Contains([]string{"create", "update", "delete"}, verb); told && !strings.HasSuffix(line, "in flight") {
				out = append(out, line)
			}
		}
	}
	return out
}
