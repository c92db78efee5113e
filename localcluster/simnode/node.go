package simnode

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// LabelNode tells simulated nodes, with the value "simulated", from real ones.
	LabelNode = "kruise.io/local-node"
	// Selector selects the nodes that the simulator plays.
	Selector = LabelNode + "=simulated"
	// AnnotationStopped on a Node, with the value "true", makes its kubelet fall silent.
	AnnotationStopped = annotationPrefix + "stopped"

	// Region is that of all nodes.
	Region = "local"
	// zones is over how many zones nodes are spread.
	zones = 3
)

// Zone is the zone of the i-th node, counted from 0.
func Zone(i int) string { return fmt.Sprintf("zone-%c", 'a'+i%zones) }

// NewNode is the i-th simulated node, counted from 1, as a kubelet would register it.
func NewNode(i int) *corev1.Node {
	name := fmt.Sprintf("sim-%d", i)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("500"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				LabelNode:                       "simulated",
				corev1.LabelHostname:            name,
				corev1.LabelOSStable:            "linux",
				corev1.LabelArchStable:          "amd64",
				corev1.LabelTopologyZone:        Zone(i - 1),
				corev1.LabelTopologyRegion:      Region,
				corev1.LabelInstanceTypeStable:  "simulated",
				"node.kubernetes.io/simulation": "kruise-local",
			},
		},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}

// Stopped tells whether a node's kubelet is to be silent.
func Stopped(node *corev1.Node) bool { return node.Annotations[AnnotationStopped] == "true" }

// nodeStatus is what a kubelet of the given version says of its node.
func nodeStatus(node *corev1.Node, address, version string, now time.Time) corev1.NodeStatus {
	status := *node.Status.DeepCopy()
	status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: address},
		{Type: corev1.NodeHostName, Address: node.Name},
	}
	status.NodeInfo = corev1.NodeSystemInfo{
		KubeletVersion: version, ContainerRuntimeVersion: "simulated://1", KernelVersion: "6.0.0-simulated",
		OSImage: "Simulated", OperatingSystem: "linux", Architecture: node.Labels[corev1.LabelArchStable],
	}
	stopped := Stopped(node)
	status.Conditions = nil
	for _, want := range []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory",
			Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure",
			Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID",
			Message: "kubelet has sufficient PID available"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
	} {
		if stopped {
			want.Status, want.Reason, want.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
		}
		want.LastHeartbeatTime, want.LastTransitionTime = stamp(now), stamp(now)
		for _, before := range node.Status.Conditions {
			if before.Type == want.Type && before.Status == want.Status {
				want.LastTransitionTime = before.LastTransitionTime
			}
		}
		status.Conditions = append(status.Conditions, want)
	}
	return status
}

// nodeSettled tells whether a node's conditions already say what they should.
func nodeSettled(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if Stopped(node) {
				return condition.Status != corev1.ConditionTrue
			}
			return condition.Status == corev1.ConditionTrue && node.Status.NodeInfo.KubeletVersion != ""
		}
	}
	return false
}
