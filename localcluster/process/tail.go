package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// tailBytes bounds how much of a log's end is looked at.
const tailBytes = 64 << 10

// Tail returns the last n lines of a file, "" when there is none.
func Tail(path string, n int) (string, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading log: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("reading log: %w", err)
	}
	from := max(0, info.Size()-tailBytes)
	content, err := io.ReadAll(io.NewSectionReader(file, from, info.Size()-from))
	if err != nil {
		return "", fmt.Errorf("reading log: %w", err)
	}
	lines := bytes.SplitAfter(content, []byte("\n"))
	if last := len(lines) - 1; last >= 0 && len(lines[last]) == 0 {
		lines = lines[:last]
	}
	return string(bytes.Join(lines[max(0, len(lines)-n):], nil)), nil
}

// Follow copies a file to w and then whatever is appended to it, until ctx ends.
func Follow(ctx context.Context, path string, w io.Writer) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading log: %w", err)
	}
	defer file.Close()
	for {
		if _, err := io.Copy(w, file); err != nil {
			return fmt.Errorf("copying log: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
}
