// Package clusters has other clusters go away, come back, be replaced by others and go back in time, while a hub is connected to them.
package clusters

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/test/kit/cluster"
	"github.com/seed-69ecc383/kruise/test/kit/scene"
)

// fleet is a hub and two members, each a control plane of its own with simulated nodes. All tests share one, and each leaves it whole.
type fleet struct {
	*scene.Test
	*clustersOf
}

// clustersOf are the clusters of a fleet.
type clustersOf struct {
	dir     string
	hub     *cluster.Cluster
	members map[string]*cluster.Cluster
	manager *cluster.Manager
}

var shared struct {
	sync.Once
	clustersOf
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := shared.down(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// newFleet returns the fleet, which is brought up for the first test.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	shared.Do(func() { shared.err = shared.up(context.Background(), "member-1", "member-2") })
	f := &fleet{Test: scene.NewTest(t), clustersOf: &shared.clustersOf}
	f.Must(shared.err)
	return f
}

func (c *clustersOf) up(ctx context.Context, names ...string) (err error) {
	if c.dir, err = os.MkdirTemp("", "kruise-fleet-"); err != nil {
		return err
	}
	var options []cluster.Options
	for _, name := range append([]string{"hub"}, names...) {
		options = append(options, cluster.Options{
			Dir: filepath.Join(c.dir, name), Nodes: 2, Args: append(cluster.Unaudited(), "--owner", strconv.Itoa(os.Getpid())),
		})
	}
	all, err := cluster.UpAll(ctx, options)
	if err != nil {
		return err
	}
	c.hub, c.members = all[0], map[string]*cluster.Cluster{}
	for i, name := range names {
		c.members[name] = all[i+1]
	}
	return nil
}

func (c *clustersOf) down() (err error) {
	if c.manager != nil {
		c.manager.Kill()
	}
	for _, member := range c.members {
		err = errors.Join(err, member.Down(context.Background()))
	}
	if c.hub != nil {
		err = errors.Join(err, c.hub.Down(context.Background()))
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// id is the UID of a cluster's namespace kube-system.
func (f *fleet) id(c *cluster.Cluster) string {
	f.Helper()
	namespace := &corev1.Namespace{}
	f.Must(c.Client.Get(f.Ctx, client.ObjectKey{Name: "kube-system"}, namespace))
	return string(namespace.UID)
}

// register gives the hub access to a member, by an account with the rights that are shipped and no others, as a cluster object of a name.
func (f *fleet) register(name, member string) {
	f.Helper()
	m := f.members[member]
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
	f.object(name, config)
}

// object makes a cluster object with a kubeconfig.
func (f *fleet) object(name string, config *clientcmdapi.Config) {
	f.Helper()
	kubeconfig, err := clientcmd.Write(*config)
	f.Must(err)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{keys.KubeconfigSecret: "true"}},
		Data:       map[string][]byte{keys.KubeconfigKey: kubeconfig},
	}
	if err := f.hub.Client.Create(f.Ctx, secret); err != nil {
		f.Must(f.hub.Client.Update(f.Ctx, secret))
	}
}
