package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"strings"
	"syscall"
	"testing"

	"k8s.io/klog/v2"

	"github.com/seed-69ecc383/kruise/internal/logging"
)

type options struct {
	log             logging.Options
	fromEnvironment bool
}

func (o *options) Bind(fs *flag.FlagSet)    { o.log.Bind(fs) }
func (o *options) FromEnvironment()         { o.fromEnvironment = true }
func (o *options) Logging() logging.Options { return o.log }

func TestExitCodes(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		err  error
		want int
		says string
	}{
		"it ends by itself":          {args: []string{"--logging-format", "json"}, want: 0, says: `"msg":"hello"`},
		"it fails":                   {err: errors.New("no API server"), want: 1, says: "kruise-test: no API server"},
		"a flag that there is not":   {args: []string{"--nothing"}, want: 2, says: "flag provided but not defined: -nothing"},
		"somebody asks for the help": {args: []string{"--help"}, want: 0, says: "-logging-format"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			o := &options{}
			got := Main(append([]string{"kruise-test"}, tc.args...), &stderr, o, func(context.Context) error {
				if !o.fromEnvironment {
					t.Error("the environment is not read")
				}
				klog.InfoS("hello") // klog takes each new sink, the log of controller-runtime just the first of the process
				return tc.err
			})
			if got != tc.want || !strings.Contains(stderr.String(), tc.says) {
				t.Errorf("Main() = %d and says %q, want %d and %q", got, stderr.String(), tc.want, tc.says)
			}
		})
	}
}

func TestASignalEndsACommand(t *testing.T) {
	got := Main([]string{"kruise-test"}, &bytes.Buffer{}, &options{}, func(ctx context.Context) error {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	if got != 0 {
		t.Errorf("Main() = %d, want 0", got)
	}
}
