package process

import (
	"flag"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

// tracesOf reads flags.
func tracesOf(t *testing.T, args ...string) *Traces {
	t.Helper()
	o := &Traces{}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	o.Bind(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestNoTracesUnlessAskedFor checks that nothing runs for traces without a collector.
func TestNoTracesUnlessAskedFor(t *testing.T) {
	o := tracesOf(t)
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	tracer, end, err := o.Tracer(t.Context(), "kruise-manager", time.Now)
	if err != nil || tracer != nil {
		t.Errorf("the tracer is %v: %v", tracer, err)
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines run, were %d", after, before)
	}
	end()
}

func TestFlagsOfTraces(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"in clear text":        {[]string{"--trace-endpoint=http://collector.observability:4318"}, ""},
		"with TLS":             {[]string{"--trace-endpoint=https://collector:4318", "--trace-sampling=0.1"}, ""},
		"no URL":               {[]string{"--trace-endpoint=collector:4318"}, "http://HOST:PORT"},
		"a path alone":         {[]string{"--trace-endpoint=/traces"}, "http://HOST:PORT"},
		"more than all":        {[]string{"--trace-sampling=1.5"}, "want 0 to 1"},
		"less than none":       {[]string{"--trace-sampling=-1"}, "want 0 to 1"},
		"what is not a number": {[]string{"--trace-sampling=NaN"}, "want 0 to 1"},
	} {
		t.Run(name, func(t *testing.T) {
			switch err := tracesOf(t, tc.args...).Validate(); {
			case err == nil && tc.want != "":
				t.Errorf("it is taken, want an error with %q", tc.want)
			case err != nil && (tc.want == "" || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}
