package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// as returns a client with the rights of a node's daemon.
func as(t *testing.T, in *cluster.Cluster, node string) client.WithWatch {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, in.DaemonKubeconfig(t.Context(), node, path))
	config, err := clientcmd.BuildConfigFromFlags("", path)
	must(t, err)
	s, err := cluster.Scheme()
	must(t, err)
	c, err := client.NewWithWatch(config, client.Options{Scheme: s})
	must(t, err)
	return c
}

// podOn makes a Pod that is bound to a node.
func podOn(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Namespace: "default", Labels: map[string]string{"a": "1"}, Annotations: map[string]string{"b": "2"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
	}
	must(t, shared.Client.Create(t.Context(), p))
	t.Cleanup(func() {
		must(t, client.IgnoreNotFound(shared.Client.Delete(context.Background(), p, client.GracePeriodSeconds(0))))
	})
	return p
}

// restartOn returns a request to restart a container of a Pod on a node.
func restartOn(node string) *v1beta1.ContainerRecreateRequest {
	return &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "on-" + node, Namespace: "default", Labels: map[string]string{keys.RecreateNodeName: node}},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName: "some", Containers: []v1beta1.ContainerRecreateRequestContainer{{Name: "main"}},
		},
	}
}

// TestWhatADaemonMayDo shows what the account of one node's daemon can read and write, with the rights and policies that are shipped.
func TestWhatADaemonMayDo(t *testing.T) {
	mine, other := node(t, "mine"), node(t, "other")
	for _, n := range []string{mine.Name, other.Name} {
		for _, o := range []client.Object{
			&v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: n}}, &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: n}}, restartOn(n),
		} {
			must(t, shared.Client.Create(t.Context(), o))
			t.Cleanup(func() { must(t, shared.Client.Delete(context.Background(), o)) })
		}
	}
	for _, namespace := range []string{"kruise-daemon-config", "default"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull"}}
		must(t, shared.Client.Create(t.Context(), secret))
		t.Cleanup(func() { must(t, shared.Client.Delete(context.Background(), secret)) })
	}
	myPod, otherPod := podOn(t, mine.Name), podOn(t, other.Name)
	daemon, unbound := as(t, shared.Cluster, mine.Name), unboundDaemon(t)
	const reported = `{"status":{"desired":1,"succeeded":1,"failed":0,"pulling":0}}`
	const ours = `{"metadata":{"annotations":{"apps.kruise.io/runtime-containers-meta":"{\"containers\":[]}"}}}`
	cases := map[string]struct {
		try     func(context.Context, client.Client) error
		who     client.Client
		refused string // part of why; empty when it may
	}{
		"what runs in a Pod of its node":       {status(myPod, ours), daemon, ""},
		"what runs in a Pod of another node":   {status(otherPod, ours), daemon, `the daemon of node "mine" may only write about Pods of that node`},
		"the phase of a Pod of its node":       {status(myPod, `{"status":{"phase":"Failed"}}`), daemon, "may only write annotation"},
		"the conditions of a Pod of its node":  {status(myPod, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), daemon, "may only write annotation"},
		"a label of a Pod of its node":         {status(myPod, `{"metadata":{"labels":{"a":"2"}}}`), daemon, "may only write annotation"},
		"another annotation there":             {status(myPod, `{"metadata":{"annotations":{"b":"3"}}}`), daemon, "may only write annotation"},
		"removing another annotation there":    {status(myPod, `{"metadata":{"annotations":{"b":null}}}`), daemon, "may only write annotation"},
		"a finalizer of a Pod of its node":     {status(myPod, `{"metadata":{"finalizers":["a.io/b"]}}`), daemon, "may only write annotation"},
		"a Pod itself":                         {patch(myPod, ours), daemon, "cannot patch resource"},
		"deleting a Pod of its node":           {remove(myPod), daemon, "cannot delete resource"},
		"all Pods":                             {list(&corev1.PodList{}), daemon, ""},
		"the status of its NodeImage":          {status(&v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, reported), daemon, ""},
		"the status of another node's":         {status(&v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, reported), daemon, `the daemon of node "mine" may only write what belongs to that node`},
		"the spec of its NodeImage":            {patch(&v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, `{"spec":{"images":{}}}`), daemon, "cannot patch resource"},
		"the probes of its node":               {status(&v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, `{"status":{"podProbeStatuses":[]}}`), daemon, ""},
		"the probes of another node":           {status(&v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, `{"status":{"podProbeStatuses":[]}}`), daemon, `the daemon of node "mine" may only write what belongs to that node`},
		"what its node is to probe":            {patch(&v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, `{"spec":{"podProbes":[]}}`), daemon, "cannot patch resource"},
		"a restart on its node":                {status(restartOn("mine"), `{"status":{"phase":"Recreating"}}`), daemon, ""},
		"a restart on another node":            {status(restartOn("other"), `{"status":{"phase":"Recreating"}}`), daemon, `the daemon of node "mine" may only write what belongs to that node`},
		"taking a restart from another node":   {patch(restartOn("other"), `{"metadata":{"labels":{"crr.apps.kruise.io/node-name":"mine"}}}`), daemon, "cannot patch resource"},
		"a Secret that NodeImages name":        {get(&corev1.Secret{}, "kruise-daemon-config", "pull"), daemon, "cannot get resource"},
		"all Secrets that NodeImages name":     {list(&corev1.SecretList{}, client.InNamespace("kruise-daemon-config")), daemon, "cannot list resource"},
		"the key of another node's daemon":     {status(&v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, `{"status":{"credentialsKey":"a2V5"}}`), daemon, `the daemon of node "mine" may only write what belongs to that node`},
		"a Secret of another namespace":        {get(&corev1.Secret{}, "default", "pull"), daemon, "cannot get resource"},
		"writing a Secret":                     {patch(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-daemon-config", Name: "pull"}}, `{"data":{"a":"Yg=="}}`), daemon, "cannot patch resource"},
		"ConfigMaps":                           {list(&corev1.ConfigMapList{}), daemon, "cannot list resource"},
		"nodes":                                {list(&corev1.NodeList{}), daemon, "cannot list resource"},
		"CloneSets":                            {list(&v1beta1.CloneSetList{}), daemon, "cannot list resource"},
		"an event of its node":                 {event(mine.Name), daemon, ""},
		"an event of another node":             {event(other.Name), daemon, "may only write events that name it as their host"},
		"an event that says not where it's of": {event(""), daemon, "may only write events that name it as their host"},
		"anything with a token of no node":     {status(myPod, ours), unbound, `the daemon of node "" may only write about Pods of that node`},
	}
	// Policies take the API server a moment to heed.
	eventually(t, "the policies are heeded", func() error {
		for name, tc := range cases {
			if err := tc.try(t.Context(), client.NewDryRunClient(tc.who)); tc.refused != "" && !apierrors.IsForbidden(err) {
				return fmt.Errorf("%s: %w", name, errors.Join(errors.New("it is not forbidden"), err))
			}
		}
		return nil
	})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.try(t.Context(), tc.who)
			switch {
			case tc.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.refused != "" && !apierrors.IsForbidden(err):
				t.Errorf("got %v, want that it is forbidden", err)
			case tc.refused != "" && !strings.Contains(err.Error(), tc.refused):
				t.Errorf("refused with %v, want %q", err, tc.refused)
			}
		})
	}
}

// unboundDaemon returns a client with a token of the daemons' account that was given to no node.
func unboundDaemon(t *testing.T) client.Client {
	t.Helper()
	token, err := shared.Kubectl(t.Context(), "create", "token", "kruise-daemon", "-n", "kruise-system")
	must(t, err)
	config := *shared.Config
	config.CertData, config.KeyData, config.BearerToken = nil, nil, strings.TrimSpace(token)
	s, err := cluster.Scheme()
	must(t, err)
	c, err := client.New(&config, client.Options{Scheme: s})
	must(t, err)
	return c
}

type try = func(context.Context, client.Client) error

func clone(o client.Object) client.Object { return o.DeepCopyObject().(client.Object) }

func kindOf(o client.Object) client.Patch {
	if _, isPod := o.(*corev1.Pod); isPod {
		return client.RawPatch(types.StrategicMergePatchType, nil)
	}
	return client.RawPatch(types.MergePatchType, nil)
}

func status(o client.Object, body string) try {
	return func(ctx context.Context, c client.Client) error {
		return c.Status().Patch(ctx, clone(o), client.RawPatch(kindOf(o).Type(), []byte(body)))
	}
}

func patch(o client.Object, body string) try {
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, clone(o), client.RawPatch(kindOf(o).Type(), []byte(body)))
	}
}

func remove(o client.Object) try {
	return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, clone(o)) }
}

func list(l client.ObjectList, options ...client.ListOption) try {
	return func(ctx context.Context, c client.Client) error { return c.List(ctx, l, options...) }
}

func get(o client.Object, namespace, name string) try {
	return func(ctx context.Context, c client.Client) error {
		return c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	}
}

// event writes an event whose host is a node.
func event(host string) try {
	return func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{GenerateName: "e-", Namespace: "default"},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "some"},
			Source:         corev1.EventSource{Component: "kruise-daemon-imagepuller", Host: host},
			Reason:         "Test", Message: "m", Type: corev1.EventTypeNormal,
		})
	}
}
