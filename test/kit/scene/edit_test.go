package scene

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestInsist(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web", errors.New("written meanwhile"))
	late := apierrors.NewInternalError(errors.New(`failed calling webhook "a": context deadline exceeded`))
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("no"))
	for name, tc := range map[string]struct {
		answers []error
		tries   int
		want    error
	}{
		"a write that succeeds":                              {[]error{nil}, 1, nil},
		"another write came before it, twice":                {[]error{conflict, conflict, nil}, 3, nil},
		"a webhook did not answer":                           {[]error{late, nil}, 2, nil},
		"a refusal":                                          {[]error{refused, nil}, 1, refused},
		"another write came before it, and it is refused":    {[]error{conflict, refused, nil}, 2, refused},
		"another write came before it, and the test is over": {[]error{conflict, context.Canceled, nil}, 2, context.Canceled},
		"another write always comes before it":               {[]error{conflict, conflict, conflict, conflict, nil}, 4, conflict},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			got := insist(4, isInVain, func() error {
				tries++
				return tc.answers[tries-1]
			})
			if !errors.Is(got, tc.want) || tries != tc.tries {
				t.Errorf("%v after %d tries, want %v after %d", got, tries, tc.want, tc.tries)
			}
		})
	}
}
