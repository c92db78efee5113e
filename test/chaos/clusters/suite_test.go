// Package clusters has other clusters go away, come back, be replaced by others and go back in time, while a hub is connected to them.
package clusters

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/clusters"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// fleet is a hub and members, each a control plane of its own.
type fleet struct {
	*scene.Test
	*clusters.Registry
	dir     string
	hub     *cluster.Cluster
	members map[string]*cluster.Cluster
}

// newFleet brings up a hub and members, and a registry that probes them every second.
func newFleet(t *testing.T, names ...string) *fleet {
	t.Helper()
	f := bringUp(t, 0, names...)
	f.connect()
	return f
}

// bringUp brings up a hub and members, each with so many simulated nodes, or with nothing but an API server.
func bringUp(t *testing.T, nodes int, names ...string) *fleet {
	t.Helper()
	log.SetLogger(logr.Discard()) // else the caches complain that there is none
	f := &fleet{Test: scene.NewTest(t), members: map[string]*cluster.Cluster{}}
	var err error
	f.dir, err = os.MkdirTemp("", "kruise-fleet-")
	f.Must(err)
	t.Cleanup(func() { _ = os.RemoveAll(f.dir) })
	all := []string{"hub"}
	var options []cluster.Options
	for _, name := range append(all, names...) {
		options = append(options, cluster.Options{
			Dir: filepath.Join(f.dir, name), Bare: nodes == 0, Nodes: nodes, Args: []string{"--owner", strconv.Itoa(os.Getpid()), "--audit=false"},
		})
	}
	up, err := cluster.UpAll(f.Ctx, options)
	f.Must(err)
	t.Cleanup(func() {
		for _, c := range append(slices.Collect(func(yield func(*cluster.Cluster) bool) {
			for _, m := range f.members {
				if !yield(m) {
					return
				}
			}
		}), f.hub) {
			if err := c.Down(f.Afterwards()); err != nil {
				t.Error(err)
			}
		}
	})
	f.hub = up[0]
	for i, name := range names {
		f.members[name] = up[i+1]
	}
	return f
}

// connect starts the registry, with times that are a tenth of the usual ones.
func (f *fleet) connect() {
	times := connection.Usual()
	times.Probe, times.ProbeLimit, times.Backoff = time.Second, 2*time.Second, time.Second/2
	f.Registry = clusters.New(clusters.Options{
		Hub: f.hub.Client, HubID: f.id(f.hub), Scheme: f.hub.Client.Scheme(), UserAgent: "test", Changed: func(types.UID) {},
		Times: times, Now: time.Now, Log: logr.Discard(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.Start(ctx)
	}()
	f.Cleanup(func() {
		cancel()
		<-done
	})
}

// id is the UID of a cluster's namespace kube-system.
func (f *fleet) id(c *cluster.Cluster) string {
	f.Helper()
	namespace := &corev1.Namespace{}
	f.Must(c.Client.Get(f.Ctx, client.ObjectKey{Name: "kube-system"}, namespace))
	return string(namespace.UID)
}

// register gives the hub access to a member, by an account with the rights that are shipped and no others, and returns the cluster object.
func (f *fleet) register(name string) clusters.Ref {
	f.Helper()
	m := f.members[name]
	root, err := cluster.Root()
	f.Must(err)
	f.Must(m.ApplyFile(f.Ctx, filepath.Join(root, "config", "multicluster", "member.yaml")))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-multicluster", Name: "kruise-hub"}}
	token := &authenticationv1.TokenRequest{}
	f.Must(m.Client.SubResource("token").Create(f.Ctx, account, token))
	config, err := clientcmd.LoadFromFile(m.Kubeconfig)
	f.Must(err)
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	kubeconfig, err := clientcmd.Write(*config)
	f.Must(err)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{keys.KubeconfigSecret: "true"}},
		Data:       map[string][]byte{keys.KubeconfigKey: kubeconfig},
	}
	if err := f.hub.Client.Create(f.Ctx, secret); err != nil {
		f.Must(f.hub.Client.Update(f.Ctx, secret))
	}
	return clusters.Ref{Kind: clusters.Secret, Namespace: "default", Name: name}
}

// until waits until a cluster is as wanted.
func (f *fleet) until(ref clusters.Ref, what string, is func(clusters.View) bool) (v clusters.View) {
	f.Helper()
	f.Eventually(fmt.Sprintf("%s is %s", ref, what), func() error {
		if v = f.Look(ref); !is(v) {
			return fmt.Errorf("it is %s: %s", v.Reason, v.Message)
		}
		return nil
	})
	return v
}

// deploy makes a Deployment of the hub in a member.
func (f *fleet) deploy(c client.Client, name string) {
	f.Helper()
	labels := map[string]string{keys.HubID: f.id(f.hub), keys.HubOwnerUID: "owner"}
	f.Must(c.Create(f.Ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:v1"}}},
			},
		},
	}))
}

// shows waits until the hub sees just these Deployments in a cluster.
func (f *fleet) shows(ref clusters.Ref, want ...string) {
	f.Helper()
	f.Eventually(fmt.Sprintf("%s shows %v", ref, want), func() error {
		v := f.Look(ref)
		if !v.Ready() {
			return fmt.Errorf("it is %s: %s", v.Reason, v.Message)
		}
		var list appsv1.DeploymentList
		if err := v.Cached().List(f.Ctx, &list); err != nil {
			return err
		}
		var got []string
		for i := range list.Items {
			got = append(got, list.Items[i].Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("it shows %v", got)
		}
		return nil
	})
}
