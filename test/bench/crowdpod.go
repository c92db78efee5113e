package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func nodeOf(number int) *corev1.Node {
	name, zone := nodeName(number), fmt.Sprintf("zone-%d", number%3)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", corev1.LabelTopologyZone: zone,
		corev1.LabelTopologyRegion: "region", corev1.LabelInstanceTypeStable: "large",
	}}}
	size := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods: resource.MustParse("5000"),
	}
	node.Status.Capacity, node.Status.Allocatable = size, size
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse})
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		Reason: "KubeletReady", Message: "kubelet is posting ready status", LastTransitionTime: metav1.Now()})
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: hostIP(number)}}
	for i := range 50 {
		image := fmt.Sprintf("registry.example/team/image-%02d", i)
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{image + ":v1", digested(image, i)}, SizeBytes: 1 << 26,
		})
	}
	return node
}

func hostIP(node int) string { return fmt.Sprintf("10.1.%d.%d", node/256, node%256) }
func podIP(serial int) string {
	return fmt.Sprintf("10.%d.%d.%d", 64+serial>>16, serial>>8&255, serial&255)
}
func longID(number int) string { return strings.Repeat(fmt.Sprintf("%08x", number), 8) }
func digested(image string, number int) string {
	return image + "@sha256:" + longID(number)
}

func crowdSet(number int) *appsv1.ReplicaSet {
	hash := fmt.Sprintf("%010x", number*7919)
	app := fmt.Sprintf("service-%05d", number)
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: crowdNamespace(number), Name: app + "-" + hash}}
	set.Spec.Replicas = new(int32(crowdReplicas))
	set.Spec.Template = crowdTemplate(app)
	set.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{
		"app.kubernetes.io/name": app, appsv1.DefaultDeploymentUniqueLabelKey: hash,
	}}
	set.Labels = set.Spec.Template.Labels
	return set
}

// crowdTemplate is what Pods of a service usually have: a program and a proxy with their settings, probes and resources.
func crowdTemplate(app string) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{
			"app.kubernetes.io/name": app, "app.kubernetes.io/part-of": "shop", "app.kubernetes.io/version": "1.27.3", "team": "checkout",
		},
		Annotations: map[string]string{
			"prometheus.io/scrape": "true", "prometheus.io/port": "9102", "kubectl.kubernetes.io/restartedAt": "2025-11-03T09:41:00Z",
		},
	}}
	for i, name := range []string{"app", "proxy"} {
		t.Spec.Containers = append(t.Spec.Containers, crowdContainer(app, name, int32(8080+i)))
	}
	t.Spec.ServiceAccountName, t.Spec.TerminationGracePeriodSeconds = "default", new(int64(30))
	expires := int64(3607)
	t.Spec.Volumes = []corev1.Volume{
		{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: app},
		}}},
		{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &expires, Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			},
		}}},
	}
	return t
}

func crowdContainer(app, name string, port int32) corev1.Container {
	c := corev1.Container{
		Name: name, Image: fmt.Sprintf("registry.example/shop/%s-%s:1.27.3", app, name), ImagePullPolicy: corev1.PullIfNotPresent,
		Ports: []corev1.ContainerPort{{Name: name, ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("8Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 10, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(port)},
		}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "settings", MountPath: "/etc/" + name, ReadOnly: true},
			{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
	}
	for i := range 8 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: fmt.Sprintf("value %d of %s in %s", i, name, app)})
	}
	return c
}

// crowdPod returns the Pod of a ReplicaSet with a number among all Pods.
func crowdPod(set *appsv1.ReplicaSet, serial, nodes int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.Namespace, Name: fmt.Sprintf("%s-%05x", set.Name, serial), Labels: set.Spec.Template.Labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		Annotations:     map[string]string{"cni.example/addresses": podIP(serial)},
	}}
	for key, value := range set.Spec.Template.Annotations {
		p.Annotations[key] = value
	}
	p.Spec = *set.Spec.Template.Spec.DeepCopy()
	p.Spec.NodeName = nodeName(serial % nodes)
	return p
}

// setRunning sets what a kubelet says of a Pod that runs.
func setRunning(p *corev1.Pod, serial int) {
	since := metav1.NewTime(time.Now().Truncate(time.Second))
	s := &p.Status
	s.Phase, s.QOSClass, s.StartTime = corev1.PodRunning, corev1.PodQOSBurstable, &since
	s.HostIP, s.PodIP = hostIP(serial%256), podIP(serial)
	s.HostIPs, s.PodIPs = []corev1.HostIP{{IP: s.HostIP}}, []corev1.PodIP{{IP: s.PodIP}}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodScheduled, corev1.PodReady,
	} {
		condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: since}
		if at := slices.IndexFunc(s.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind }); at >= 0 {
			s.Conditions[at] = condition
		} else {
			s.Conditions = append(s.Conditions, condition)
		}
	}
	s.ContainerStatuses = nil
	for i, c := range p.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: digested(c.Image, i), ContainerID: "containerd://" + longID(2*serial+i), Ready: true,
			Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}},
		})
	}
}
