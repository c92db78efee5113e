package main

import (
	"context"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

func runDeployment(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx, labels := context.Background(), map[string]string{"app": "web"}
	_, err := client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(20)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{
					{Name: "app", Image: "nginx:1.27", Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
					}},
					{Name: "log", Image: "log:1"},
				}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		web, err := client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if web.Status.AvailableReplicas != 20 {
			return strconv.Itoa(int(web.Status.AvailableReplicas)) + " of 20 pods are available"
		}
		return ""
	})
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	addresses, nodes := map[string]bool{}, map[string]bool{}
	for i := range pods.Items {
		addresses[pods.Items[i].Status.PodIP] = true
		nodes[pods.Items[i].Spec.NodeName] = true
	}
	if len(addresses) != 20 || len(nodes) != 3 {
		t.Errorf("20 pods have %d addresses on %d nodes, want 20 on 3", len(addresses), len(nodes))
	}
}

func onePod(t *testing.T, client kubernetes.Interface) *corev1.Pod {
	t.Helper()
	pods, err := client.CoreV1().Pods("default").List(context.Background(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	return &pods.Items[0]
}

// await waits until the container "app" of a Pod is as wanted.
func await(t *testing.T, client kubernetes.Interface, name string, missing func(*corev1.ContainerStatus) string) {
	t.Helper()
	eventually(t, func() string {
		pod, err := client.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return missing(&pod.Status.ContainerStatuses[0])
	})
}

func changeImage(t *testing.T, client kubernetes.Interface, pod *corev1.Pod) {
	t.Helper()
	patch := []byte(`{"spec":{"containers":[{"name":"app","image":"nginx:1.28"}]}}`)
	_, err := client.CoreV1().Pods("default").
		Patch(context.Background(), pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, client, pod.Name, func(app *corev1.ContainerStatus) string {
		if app.RestartCount != 1 || !app.Ready || app.Image != "docker.io/library/nginx:1.28" || app.ImageID == pod.Status.ContainerStatuses[0].ImageID {
			return "the container does not run the new image: " + app.String()
		}
		return ""
	})
	now, err := client.CoreV1().Pods("default").Get(context.Background(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if log := now.Status.ContainerStatuses[1]; log.RestartCount != 0 {
		t.Errorf("the other container restarted too: %s", log.String())
	}
}

func resize(t *testing.T, client kubernetes.Interface, pod *corev1.Pod) {
	t.Helper()
	patch := []byte(`{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"200m"}}}]}}`)
	_, err := client.CoreV1().Pods("default").
		Patch(context.Background(), pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "resize")
	if err != nil {
		t.Fatal(err)
	}
	await(t, client, pod.Name, func(app *corev1.ContainerStatus) string {
		if app.Resources.Requests.Cpu().String() != "200m" || app.RestartCount != 1 {
			return "the container was not resized in place: " + app.String()
		}
		return ""
	})
}

// claim gives a Pod a volume, makes it larger and takes it away.
func claim(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx := context.Background()
	claims := client.CoreV1().PersistentVolumeClaims("default")
	_, err := claims.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "app", Image: "db:1", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
			}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	size := func(want string) func() string {
		return func() string {
			data, err := claims.Get(ctx, "data", metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if data.Status.Phase != corev1.ClaimBound || data.Status.Capacity.Storage().String() != want {
				return "the claim is not bound with " + want + ": " + data.Status.String()
			}
			return ""
		}
	}
	eventually(t, size("1Gi"))
	patch := []byte(`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	if _, err := claims.Patch(ctx, "data", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, size("2Gi"))
	if err := client.CoreV1().Pods("default").Delete(ctx, "db", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := claims.Delete(ctx, "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		volumes, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		if len(volumes.Items) > 0 {
			return "the volume is still there: " + volumes.Items[0].Status.String()
		}
		return ""
	})
}
