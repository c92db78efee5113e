package operation

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"
)

// detour leads to a manager, whose answers it holds back for a while.
type detour struct {
	port  string
	delay atomic.Int64
}

// detourTo returns a detour to a port of this machine.
func (s *site) detourTo(port string) *detour {
	s.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(s.ownAddress(), "0"))
	s.Must(err)
	s.Cleanup(func() {
		if err := listener.Close(); err != nil {
			s.Error(err)
		}
	})
	d := &detour{}
	_, d.port, err = net.SplitHostPort(listener.Addr().String())
	s.Must(err)
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // it is closed
			}
			to, err := net.Dial("tcp", net.JoinHostPort("localhost", port))
			if err != nil {
				_ = from.Close() // the caller learns of it by that
				continue
			}
			go d.carry(to, from, func() time.Duration { return 0 })
			go d.carry(from, to, func() time.Duration { return time.Duration(d.delay.Load()) })
		}
	}()
	return d
}

// carry copies what comes, each piece after a delay, until either end closes, and then closes both.
func (d *detour) carry(to, from net.Conn, delay func() time.Duration) {
	defer func() { _ = errors.Join(to.Close(), from.Close()) }() // the other direction may have closed them
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		time.Sleep(delay())
		if _, failed := to.Write(piece[:n]); failed != nil || errors.Is(err, io.EOF) || err != nil {
			return
		}
	}
}

// servesSlowly checks what tenants see of a manager whose answers take a second, and longer than API servers wait.
func (s *site) servesSlowly(way *detour, load *hanging) {
	s.Helper()
	s.Must(load.create())
	way.delay.Store(int64(time.Second))
	began := time.Now()
	s.Must(load.create())
	if took := time.Since(began); took < time.Second {
		s.Errorf("the answer of a manager that takes a second is there after %s: the test sees nothing", took)
	}
	way.delay.Store(int64(31 * time.Second))
	began = time.Now()
	err := load.create()
	if took := time.Since(began); err == nil || took > webhookPatience {
		s.Errorf("a selected Pod is answered with %v after %s, want a refusal within %s", err, took, webhookPatience)
	}
	if err != nil && !(strings.Contains(err.Error(), "failed calling webhook") && strings.Contains(err.Error(), "context deadline exceeded")) {
		s.Errorf("a selected Pod is refused with %q, want it to say that the webhook did not answer in time", err)
	}
	began = time.Now()
	s.Must(load.createOther())
	if took := time.Since(began); took > 3*time.Second { // less than for a webhook that does not answer
		s.Errorf("a Pod that nothing selects is created only after %s", took)
	}
	way.delay.Store(0)
	s.Eventually("a selected Pod is created again", load.create)
}
