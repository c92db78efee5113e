package admission

import (
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-69ecc383/kruise/internal/cli/lint"
)

// schemaOfLint is what kubectl kruise lint asks, without webhooks.
var schemaOfLint = sync.OnceValues(func() (*lint.Server, error) {
	server, err := lint.NewServer(nil, time.Now)
	if err == nil {
		server.SchemaOnly = true
	}
	return server, err
})

// lintAnswers checks that lint answers to the creation of an object, to the letter, what an API server has answered.
func lintAnswers(t *testing.T, o *unstructured.Unstructured, err error) {
	t.Helper()
	server, failed := schemaOfLint()
	if failed != nil {
		t.Fatal(failed)
	}
	answer, failed := server.Create(t.Context(), o)
	if failed != nil {
		t.Fatal(failed)
	}
	want := ""
	if err != nil {
		want = err.Error()
	}
	if got := answer.Message(); got != want {
		t.Errorf("lint answers\n%s\nand the API server\n%s", got, want)
	}
}
