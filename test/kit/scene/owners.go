package scene

import (
	"strings"
	"sync"
)

// owners are the tests that namespaces belong to.
type owners struct {
	mu   sync.Mutex
	test map[string]string
}

func (o *owners) own(namespace, test string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.test == nil {
		o.test = map[string]string{}
	}
	o.test[namespace] = topOf(test)
}

// of returns the test that a namespace belongs to; empty for those of none.
func (o *owners) of(namespace string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.test[namespace]
}

// topOf returns the name of the test that a subtest is of.
func topOf(test string) string {
	top, _, _ := strings.Cut(test, "/")
	return top
}
