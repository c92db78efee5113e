// Command backend is the back end of tests in which containers run: it answers every request with its revision, at port $PORT. It ends as a
// good server does: once it is told to, it takes no more connections, and answers what it has been asked.
//
//	go build -ldflags "-X main.revision=v2" ./test/kit/backends/backend
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// revision is what the back end says of itself. The linker sets it, so that each image has its own.
var revision string

// endTimeout is how long the last requests may take.
const endTimeout = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := serve(ctx, ":"+os.Getenv("PORT"))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "backend:", err)
		os.Exit(1)
	}
}

// serve answers requests until the context ends.
func serve(ctx context.Context, address string) error {
	s := &http.Server{Addr: address, ReadHeaderTimeout: endTimeout, Handler: http.HandlerFunc(answer)}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		ended <- s.Shutdown(ending)
	}()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}

func answer(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, revision) }
