package ops

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func TestWrongRequestsAreRefused(t *testing.T) {
	e := newEnv(t)
	e.runPod("p", nil, "main")
	e.Must(e.Client.Create(e.Ctx, &corev1.Pod{ // bound to no node
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "unbound"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}))
	for name, tc := range map[string]struct{ spec, want string }{
		"no Pod":        {`{containers: [{name: main}]}`, "podName can not be empty"},
		"no containers": {`{podName: p, containers: []}`, "containers can not be empty"},
		"a short deadline": {
			`{podName: p, containers: [{name: main}], activeDeadlineSeconds: 2}`, "activeDeadlineSeconds can not be less than 3s",
		},
		"a negative number": {
			`{podName: p, containers: [{name: main}], strategy: {unreadyGracePeriodSeconds: -1}}`, "must not be negative",
		},
		"an unknown policy": {`{podName: p, containers: [{name: main}], strategy: {failurePolicy: Retry}}`, "failurePolicy"},
		"no such Pod":       {`{podName: q, containers: [{name: main}]}`, "there is no such Pod"},
		"an unbound Pod":    {`{podName: unbound, containers: [{name: main}]}`, "not bound to a node"},
		"twice the same":    {`{podName: p, containers: [{name: main}, {name: main}]}`, "can not recreate main multi times"},
		"an own hook": {
			`{podName: p, containers: [{name: main, preStop: {exec: {command: [a]}}}]}`, "is filled in when the request is created",
		},
		"no such container": {`{podName: p, containers: [{name: other}]}`, "container other not found in Pod"},
		"an unknown context": {
			`{podName: p, containers: [{name: main, statusContext: {containerID: a, restartCount: 0}}]}`,
			"is filled in when the request is created",
		},
	} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			var object client.Object = parse[v1beta1.ContainerRecreateRequest](e, "spec: "+tc.spec)
			if version == "v1alpha1" {
				object = parse[v1alpha1.ContainerRecreateRequest](e, "spec: "+tc.spec)
			}
			object.SetName("wrong")
			if err := e.Client.Create(e.Ctx, object); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s in %s: %v, want %q", name, version, err, tc.want)
			}
		}
	}
	r := e.ask("r", "p", `{}`, "main")
	for name, tc := range map[string]struct {
		change func(*v1beta1.ContainerRecreateRequest)
		want   string
	}{
		"another Pod": {func(r *v1beta1.ContainerRecreateRequest) { r.Spec.PodName = "q" }, "immutable"},
		"another container": {
			func(r *v1beta1.ContainerRecreateRequest) { r.Spec.Containers[0].StatusContext.ContainerID = "c://x" }, "immutable",
		},
		"another node":    {func(r *v1beta1.ContainerRecreateRequest) { r.Labels[keys.RecreateNodeName] = "x" }, "immutable"},
		"kept for a time": {func(r *v1beta1.ContainerRecreateRequest) { ttl := int32(60); r.Spec.TTLSecondsAfterFinished = &ttl }, ""},
	} {
		e.Must(e.Client.Get(e.Ctx, client.ObjectKeyFromObject(r), r))
		before := r.DeepCopy()
		tc.change(r)
		err := e.Client.Patch(e.Ctx, r, client.MergeFrom(before))
		if refused := err != nil && apierrors.IsForbidden(err) && strings.Contains(err.Error(), tc.want); refused != (tc.want != "") || (err != nil) != (tc.want != "") {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
