package simnode

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// workers is how many status writes are on their way at the same time, at most.
	workers = 64
	// byNode is the index of Pods by the node they are bound to.
	byNode = "node"
)

// Kubelets plays the kubelets of all nodes that bear the label Selector.
type Kubelets struct {
	client   kubernetes.Interface
	defaults Rules
	version  string // what the nodes say is their kubelet's

	nodes   cache.SharedIndexInformer
	pods    cache.SharedIndexInformer
	sources sources
	events  record.EventRecorder

	queue     workqueue.TypedRateLimitingInterface[string]
	nodeQueue workqueue.TypedRateLimitingInterface[string]
	awake     func(node string) // told of nodes that answer, or answer again; nil for nobody
	podIPs    *addresses
	hostIPs   *addresses

	mu      sync.Mutex
	records map[string]*kept  // by namespace/name of the Pod
	hosts   map[string]string // addresses by node
}

// kept is what the simulator remembers of one Pod. Only one worker at a time has it.
type kept struct {
	uid types.UID
	box Sandbox
	// answer is the Pod as our last write left it; the cache may not have it yet.
	answer *corev1.Pod
	// gone is true when the Pod's last words are said and only finalizers, if anything, keep it.
	gone bool
	// warned is the last complaint about the Pod's annotations, so that it is made once.
	warned string
}

// NewKubelets makes the simulator; Run starts it.
func NewKubelets(client kubernetes.Interface, defaults Rules, version string) (*Kubelets, error) {
	k := &Kubelets{
		client:    client,
		defaults:  defaults,
		version:   version,
		queue:     newQueue(),
		nodeQueue: newQueue(),
		podIPs:    newAddresses(netip.MustParsePrefix("10.128.0.0/10")),
		hostIPs:   newAddresses(netip.MustParsePrefix("10.112.0.0/16")),
		records:   map[string]*kept{},
		hosts:     map[string]string{},
	}
	nodes := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = Selector }))
	pods := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		}))
	k.nodes = nodes.Core().V1().Nodes().Informer()
	k.pods = pods.Core().V1().Pods().Informer()
	k.sources = newSources(informers.NewSharedInformerFactory(client, 0))
	err := k.pods.AddIndexers(cache.Indexers{byNode: func(object any) ([]string, error) {
		return []string{object.(*corev1.Pod).Spec.NodeName}, nil
	}})
	if err != nil {
		return nil, fmt.Errorf("indexing pods: %w", err)
	}
	if _, err := k.pods.AddEventHandler(enqueuer(k.queue)); err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	if _, err := k.nodes.AddEventHandler(enqueuer(k.nodeQueue)); err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	return k, nil
}

func newQueue() workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](20*time.Millisecond, 10*time.Second))
}

// withoutManagedFields drops what the simulator does not read and what is half of a Pod.
func withoutManagedFields(object any) (any, error) {
	if accessor, ok := object.(metav1.Object); ok {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

func enqueuer(queue workqueue.TypedRateLimitingInterface[string]) cache.ResourceEventHandler {
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, now any) { add(now) }, DeleteFunc: add}
}

// Run plays until ctx ends.
func (k *Kubelets) Run(ctx context.Context) error {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(eventSink(k.client))
	defer broadcaster.Shutdown()
	k.events = broadcaster.NewRecorder(scheme(), corev1.EventSource{Component: "kubelet"})

	var group sync.WaitGroup
	for _, informer := range append(k.sources.informers(), k.nodes, k.pods) {
		group.Go(func() { informer.RunWithContext(ctx) })
	}
	for _, informer := range append(k.sources.informers(), k.nodes, k.pods) {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return errors.New("reading pods and nodes: stopped before the first answer")
		}
	}
	k.reserveAddresses()
	for range workers {
		group.Go(func() { work(ctx, k.queue, k.syncPod) })
	}
	for range 8 {
		group.Go(func() { work(ctx, k.nodeQueue, k.syncNode) })
	}
	group.Go(func() { k.heartbeat(ctx) })
	<-ctx.Done()
	k.queue.ShutDown()
	k.nodeQueue.ShutDown()
	group.Wait()
	return nil
}

// work takes keys off a queue, one after the other, until the queue ends.
func work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string], sync func(context.Context, string) error) {
	for {
		key, end := queue.Get()
		if end {
			return
		}
		if err := sync(ctx, key); err != nil {
			klog.FromContext(ctx).Error(err, "Will try again", "key", key)
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

// reserveAddresses keeps the addresses of Pods and nodes that were there before.
func (k *Kubelets) reserveAddresses() {
	for _, object := range k.pods.GetStore().List() {
		k.podIPs.reserve(object.(*corev1.Pod).Status.PodIP)
	}
	for _, object := range k.nodes.GetStore().List() {
		node := object.(*corev1.Node)
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				k.hostIPs.reserve(address.Address)
				k.hosts[node.Name] = address.Address
			}
		}
	}
}

// node finds a node that is simulated and not stopped; nil for all others.
func (k *Kubelets) node(name string) *corev1.Node {
	object, found, err := k.nodes.GetStore().GetByKey(name)
	if err != nil || !found {
		return nil
	}
	if node := object.(*corev1.Node); !Stopped(node) {
		return node
	}
	return nil
}

// remembered is the record of a Pod, made if there is none. A Pod that is gone leaves none.
func (k *Kubelets) remembered(key string, pod *corev1.Pod) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.records[key]
	if r != nil && (pod == nil || r.uid != pod.UID) {
		k.podIPs.release(r.box.IP)
		delete(k.records, key)
		r = nil
	}
	if r == nil && pod != nil {
		r = &kept{uid: pod.UID}
		k.records[key] = r
	}
	return r
}

// syncPod brings one Pod to the present and reports it.
func (k *Kubelets) syncPod(ctx context.Context, key string) error {
	object, found, err := k.pods.GetStore().GetByKey(key)
	if err != nil {
		return fmt.Errorf("finding pod %s: %w", key, err)
	}
	if !found {
		k.remembered(key, nil)
		return nil
	}
	pod := object.(*corev1.Pod)
	if k.node(pod.Spec.NodeName) == nil {
		return nil
	}
	r := k.remembered(key, pod)
	if r.gone {
		return nil
	}
	situation := Situation{
		Pod: newer(pod, r.answer), Now: time.Now(), Defaults: k.defaults, HostIP: k.host(pod.Spec.NodeName), Missing: k.sources.missing,
	}
	if r.box.Admitted.IsZero() && pod.Status.StartTime != nil {
		r.box = Recover(situation)
	}
	if r.box.IP == "" && !pod.Spec.HostNetwork {
		if r.box.IP, err = k.podIPs.take(); err != nil {
			return fmt.Errorf("choosing an address for pod %s: %w", key, err)
		}
	}
	before := r.box
	box, next, unread := Advance(r.box, situation)
	r.box = box
	k.announce(r, before, situation.Pod, unread)
	if !next.IsZero() {
		k.queue.AddAfter(key, time.Until(next))
	}
	return k.report(ctx, r, situation)
}

// newer is the later version of a Pod.
func newer(cached, answer *corev1.Pod) *corev1.Pod {
	if answer == nil {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(answer.ResourceVersion, cached.ResourceVersion)
	if err == nil && order > 0 {
		return answer
	}
	return cached
}
