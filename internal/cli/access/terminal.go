package access

import (
	"context"
	"time"

	"k8s.io/client-go/tools/remotecommand"
)

// sizes tells of the size of a terminal, at first and after each change. It looks again and again: not all systems tell of a change.
type sizes struct {
	ctx  context.Context
	of   func() (width, height int, err error)
	last remotecommand.TerminalSize
}

// looks is how long a change of the size may go unseen.
const looks = 250 * time.Millisecond

// Next implements remotecommand.TerminalSizeQueue.
func (s *sizes) Next() *remotecommand.TerminalSize {
	for {
		width, height, err := s.of()
		if err != nil {
			return nil
		}
		now := remotecommand.TerminalSize{Width: uint16(max(width, 0)), Height: uint16(max(height, 0))} // no terminal is larger
		if now != s.last {
			s.last = now
			return &now
		}
		select {
		case <-s.ctx.Done():
			return nil
		case <-time.After(looks):
		}
	}
}
