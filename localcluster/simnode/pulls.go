package simnode

import (
	"context"
	"crypto/ecdh"
	"crypto/hpke"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// nodeImages is the resource in which nodes are asked to pull images and answer. It is there only once Kruise is installed.
func nodeImages() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1beta1", Resource: "nodeimages"}
}

// appears is how often is looked whether the resource is there.
const appears = time.Second

// Pulls plays the part of the daemons of nodes that pulls images ahead of Pods. Nothing is pulled: an answer is a matter of time.
type Pulls struct {
	client  dynamic.Interface
	rules   Rules
	answers func(node string) bool // whether a node is simulated and not stopped
	key     []byte                 // public, of all simulated daemons
	images  cache.SharedIndexInformer
	queue   workqueue.TypedRateLimitingInterface[string]

	mu      sync.Mutex
	has     map[string]*storage                   // by node
	written map[string]*unstructured.Unstructured // by node: what our last write left
}

// KeySeed is what the HPKE key of simulated daemons is derived from (X25519): tests may read the credentials that these are given.
const KeySeed = "the key of the daemons of simulated nodes"

// NewPulls makes the simulator; Run starts it. Answers says for which nodes it answers.
func NewPulls(client dynamic.Interface, rules Rules, answers func(node string) bool) (*Pulls, error) {
	key, err := hpke.DHKEM(ecdh.X25519()).DeriveKeyPair([]byte(KeySeed))
	if err != nil {
		return nil, fmt.Errorf("making the key of simulated daemons: %w", err)
	}
	p := &Pulls{
		client: client, rules: rules, answers: answers, queue: newQueue(), key: key.PublicKey().Bytes(),
		has: map[string]*storage{}, written: map[string]*unstructured.Unstructured{},
	}
	p.images = dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(nodeImages()).Informer()
	if err := p.images.SetTransform(withoutManagedFields); err != nil {
		return nil, fmt.Errorf("watching NodeImages: %w", err)
	}
	if _, err := p.images.AddEventHandler(enqueuer(p.queue)); err != nil {
		return nil, fmt.Errorf("watching NodeImages: %w", err)
	}
	return p, nil
}

// Wake has a node look at what it is asked for, because it answers again.
func (p *Pulls) Wake(node string) { p.queue.Add(node) }

// Run plays until ctx ends.
func (p *Pulls) Run(ctx context.Context) error {
	for {
		_, err := p.client.Resource(nodeImages()).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			break
		}
		if !pause(ctx, appears) {
			return nil
		}
	}
	var group sync.WaitGroup
	group.Go(func() { p.images.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), p.images.HasSynced) {
		return errors.New("reading NodeImages: stopped before the first answer")
	}
	for range workers {
		group.Go(func() { work(ctx, p.queue, p.sync) })
	}
	<-ctx.Done()
	p.queue.ShutDown()
	group.Wait()
	return nil
}

// sync brings one node to the present and reports what it has pulled.
func (p *Pulls) sync(ctx context.Context, name string) error {
	object, found, err := p.images.GetStore().GetByKey(name)
	if err != nil {
		return fmt.Errorf("finding NodeImage %s: %w", name, err)
	}
	if !found {
		p.mu.Lock()
		delete(p.has, name)
		delete(p.written, name)
		p.mu.Unlock()
		return nil
	}
	if !p.answers(name) {
		return nil
	}
	asked := p.latest(name, object.(*unstructured.Unstructured))
	var image nodeImage
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(asked.Object, &image); err != nil {
		return fmt.Errorf("reading NodeImage %s: %w", name, err)
	}
	now := time.Now()
	status, next := p.storage(name).answer(image, p.rules, now)
	status.CredentialsKey = p.key
	if !next.IsZero() {
		p.queue.AddAfter(name, max(time.Until(next), time.Millisecond))
	}
	if apiequality.Semantic.DeepEqual(image.Status, status) {
		return nil
	}
	encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return fmt.Errorf("encoding the status of NodeImage %s: %w", name, err)
	}
	answer := asked.DeepCopy()
	answer.Object["status"] = encoded
	stored, err := p.client.Resource(nodeImages()).UpdateStatus(ctx, answer, metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		// The event of what another one wrote is on its way.
		p.queue.AddAfter(name, 100*time.Millisecond)
		return nil
	case err != nil:
		return fmt.Errorf("writing the status of NodeImage %s: %w", name, err)
	}
	p.mu.Lock()
	p.written[name] = stored
	p.mu.Unlock()
	return nil
}

// latest is the later version of a NodeImage: that of the cache, or what our last write left.
func (p *Pulls) latest(name string, cached *unstructured.Unstructured) *unstructured.Unstructured {
	p.mu.Lock()
	defer p.mu.Unlock()
	stored := p.written[name]
	if stored == nil || stored.GetUID() != cached.GetUID() {
		return cached
	}
	if order, err := resourceversion.CompareResourceVersion(stored.GetResourceVersion(), cached.GetResourceVersion()); err == nil &&
		order > 0 {
		return stored
	}
	return cached
}

func (p *Pulls) storage(node string) *storage {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.has[node] == nil {
		p.has[node] = newStorage()
	}
	return p.has[node]
}

// What a reference says of a pull. The words may stand anywhere in the repository or the tag.
const (
	tagNoSuch   = "no-such"   // the registry has no such image
	tagHangPull = "hang-pull" // the registry never answers
)

// errorOf is what a registry says of an image; empty when it has it.
func errorOf(reference string) string {
	if strings.Contains(reference, tagNoSuch) || strings.Contains(reference, tagFailPull) {
		return fmt.Sprintf("failed to pull and unpack image %q: not found", resolve(reference).name)
	}
	return ""
}
