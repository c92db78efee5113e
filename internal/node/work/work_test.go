package work

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestABellNeverWaits: nobody listens, and of three rings one is heard later.
func TestABellNeverWaits(t *testing.T) {
	bell := NewBell()
	for range 3 {
		bell.Ring(&corev1.Pod{})
	}
	<-bell.rings
	select {
	case <-bell.rings:
		t.Error("a second look was asked for, want one")
	default:
	}
	bell.Ring(&corev1.Pod{})
	if len(bell.rings) != 1 {
		t.Error("it does not ring any more after it was heard")
	}
}
