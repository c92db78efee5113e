package inject

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// TestAnUpdateInPlaceKeepsTheLaunchOrder changes the images of two containers of different priorities at once: the one of the lower priority gets its
// image only when the other one is ready with the new one.
func TestAnUpdateInPlaceKeepsTheLaunchOrder(t *testing.T) {
	e := newEnv(t)
	set := e.apply(`
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}
  template:
    metadata:
      labels: {app: web}
      annotations: {sim.kruise.io/ready-delay.side: 1s}
    spec:
      containers:
      - {name: main, image: "main:1"}
      - {name: side, image: "side:1", env: [{name: KRUISE_CONTAINER_PRIORITY, value: "1"}]}
`)
	var name string
	e.Eventually("there is a Pod", func() error {
		var list corev1.PodList
		e.Must(e.List(e.Ctx, &list, client.InNamespace(e.Namespace)))
		if len(list.Items) == 0 {
			return errors.New("there is none")
		}
		name = list.Items[0].Name
		return nil
	})
	before := e.launched(name)
	e.startedInOrder(before, "side", "main")
	var mu sync.Mutex
	var wrong []string
	sawBetween := false
	stop, err := shared.Follow(e.Ctx, &corev1.PodList{}, e.Namespace, func(event watch.Event) {
		p, isPod := event.Object.(*corev1.Pod)
		if !isPod {
			return // a bookmark
		}
		mu.Lock()
		defer mu.Unlock()
		main, side := pod.Container(p, "main").Image, pod.ContainerStatus(p, "side")
		sideFollows := pod.Container(p, "side").Image == "side:2" && side != nil && side.Ready && side.RestartCount == 1
		sawBetween = sawBetween || sideFollows && main == "main:1"
		if main == "main:2" && !sideFollows && pod.ContainerStatus(p, "main").RestartCount == 0 {
			wrong = append(wrong, fmt.Sprintf("main has its image while side is %+v", side))
		}
	})
	e.Must(err)
	images := `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"main:2"},{"op":"replace","path":"/spec/template/spec/containers/1/image","value":"side:2"}]`
	e.Must(e.Patch(e.Ctx, set, client.RawPatch(types.JSONPatchType, []byte(images))))
	e.Eventually("both containers follow", func() error {
		p := e.pod(name)
		for _, container := range []string{"main", "side"} {
			if status := pod.ContainerStatus(p, container); status == nil || status.RestartCount != 1 || !status.Ready {
				return fmt.Errorf("%s is %+v", container, status)
			}
		}
		return nil
	})
	e.Must(stop())
	if len(wrong) > 0 || !sawBetween {
		t.Errorf("the order is not kept: %v, and main was seen to wait for side: %t", wrong, sawBetween)
	}
	if after := e.pod(name); after.UID != before.UID {
		t.Error("the Pod is another one")
	}
}
