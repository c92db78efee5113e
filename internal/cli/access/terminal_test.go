package access

import (
	"context"
	"testing"
)

// TestSizes changes the size of a terminal.
func TestSizes(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	widths := []int{80, 80, 100}
	s := &sizes{ctx: ctx, of: func() (int, int, error) {
		width := widths[0]
		if len(widths) > 1 {
			widths = widths[1:]
		}
		return width, 25, nil
	}}
	if got := s.Next(); got.Width != 80 || got.Height != 25 {
		t.Errorf("the first size is %v", got)
	}
	if got := s.Next(); got.Width != 100 {
		t.Errorf("the second size is %v", got)
	}
	stop()
	if got := s.Next(); got != nil {
		t.Errorf("there is a size %v without a change", got)
	}
}
