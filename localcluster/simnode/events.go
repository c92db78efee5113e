package simnode

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

func eventSink(client kubernetes.Interface) record.EventSink {
	return &typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")}
}

func scheme() *runtime.Scheme { return clientgoscheme.Scheme }

// announce emits the events that tell of trouble. Those of everyday life (Pulled, Created, Started) are left out: they
// would be most of the writes of a large cluster, and nobody acts on them.
func (k *Kubelets) announce(r *kept, before Sandbox, pod *corev1.Pod, unread error) {
	if unread != nil && unread.Error() != r.warned {
		r.warned = unread.Error()
		k.events.Event(pod, corev1.EventTypeWarning, "InvalidSimulation", r.warned)
	}
	for i := range r.box.Containers {
		c := &r.box.Containers[i]
		if old := before.container(c.Name); old != nil && old.Reason == c.Reason {
			continue
		}
		switch c.Reason {
		case reasonErrPull, reasonBadName, reasonConfig:
			k.events.Event(pod, corev1.EventTypeWarning, "Failed", c.Message)
		case reasonPullBackOff:
			k.events.Event(pod, corev1.EventTypeNormal, "BackOff", c.Message)
		case reasonCrashLoop:
			k.events.Event(pod, corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container "+c.Name+" in pod "+
				pod.Name+"_"+pod.Namespace+"("+string(pod.UID)+")")
		}
	}
}
