package node

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// recorders make recorders of events. An event of the daemon names the node as its host: the policy that holds daemons to their nodes asks for it.
type recorders struct {
	record.EventBroadcaster
	scheme *runtime.Scheme
	node   string
}

func newRecorders(clients kubernetes.Interface, s *runtime.Scheme, node string) recorders {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events("")})
	return recorders{EventBroadcaster: broadcaster, scheme: s, node: node}
}

// as returns a recorder whose events come from the given component.
func (r recorders) as(component string) record.EventRecorder {
	return r.NewRecorder(r.scheme, corev1.EventSource{Component: component, Host: r.node})
}
