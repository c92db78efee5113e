package simnode

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	nodeutil "k8s.io/kubernetes/pkg/controller/util/node"
)

const (
	// leaseInterval and leaseDuration are a kubelet's own defaults.
	leaseInterval = 10 * time.Second
	leaseDuration = 40
	// heartbeats is how many renewals may be on their way at the same time.
	heartbeats = 32
)

// host is the address of a node, the same as long as the node is there.
func (k *Kubelets) host(node string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ip, ok := k.hosts[node]; ok {
		return ip
	}
	ip, err := k.hostIPs.take()
	if err != nil {
		return "" // more than 65,000 nodes: the node has no address, which its status shows
	}
	k.hosts[node] = ip
	return ip
}

// syncNode says what a node's kubelet says of it, once, and wakes its Pods if it starts to act.
func (k *Kubelets) syncNode(ctx context.Context, name string) error {
	object, found, err := k.nodes.GetStore().GetByKey(name)
	if err != nil {
		return fmt.Errorf("finding node %s: %w", name, err)
	}
	if !found {
		k.mu.Lock()
		k.hostIPs.release(k.hosts[name])
		delete(k.hosts, name)
		k.mu.Unlock()
		return nil
	}
	node := object.(*corev1.Node)
	if nodeSettled(node) {
		if !Stopped(node) {
			if k.awake != nil {
				k.awake(name)
			}
			return k.wake(name)
		}
		return nil
	}
	if Stopped(node) {
		// What the controllers would find out by themselves in the better part of a minute is said at once.
		if err := k.markNotReady(ctx, node); err != nil {
			return err
		}
	} else if err := k.renew(ctx, name); err != nil {
		return err
	}
	status := nodeStatus(node, k.host(name), k.version, time.Now())
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"conditions": status.Conditions, "addresses": status.Addresses, "nodeInfo": status.NodeInfo,
	}})
	if err != nil {
		return fmt.Errorf("encoding status of node %s: %w", name, err)
	}
	_, err = k.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing status of node %s: %w", name, err)
	}
	return nil
}

func (k *Kubelets) podsOn(node string) ([]*corev1.Pod, error) {
	objects, err := k.pods.GetIndexer().ByIndex(byNode, node)
	if err != nil {
		return nil, fmt.Errorf("finding pods of node %s: %w", node, err)
	}
	pods := make([]*corev1.Pod, len(objects))
	for i, object := range objects {
		pods[i] = object.(*corev1.Pod)
	}
	return pods, nil
}

// wake has all Pods of a node looked at.
func (k *Kubelets) wake(node string) error {
	pods, err := k.podsOn(node)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		k.queue.Add(pod.Namespace + "/" + pod.Name)
	}
	return nil
}

// markNotReady does to a silent node's Pods what the node lifecycle controller does.
func (k *Kubelets) markNotReady(ctx context.Context, node *corev1.Node) error {
	pods, err := k.podsOn(node.Name)
	if err != nil {
		return err
	}
	if err := nodeutil.MarkPodsNotReady(ctx, k.client, k.events, pods, node.Name); err != nil {
		return fmt.Errorf("marking pods of node %s: %w", node.Name, err)
	}
	return nil
}

// heartbeat renews the leases of all nodes, spread evenly over the interval. A slow answer delays no other node: on a
// machine with too much to do, nodes must not seem lost.
func (k *Kubelets) heartbeat(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(heartbeats)
	for {
		names := k.nodes.GetStore().ListKeys()
		begin := time.Now()
		for i, name := range names {
			if k.node(name) != nil {
				group.Go(func() error {
					if err := k.renew(ctx, name); err != nil {
						klog.FromContext(ctx).Error(err, "Will try again")
					}
					return nil
				})
			}
			if !pause(ctx, time.Until(begin.Add(leaseInterval*time.Duration(i+1)/time.Duration(len(names))))) {
				return
			}
		}
		if len(names) == 0 && !pause(ctx, time.Second) {
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// renew says that a node lives.
func (k *Kubelets) renew(ctx context.Context, name string) error {
	now := metav1.NewMicroTime(time.Now())
	duration := int32(leaseDuration)
	leases := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	patch, err := json.Marshal(map[string]any{"spec": coordinationv1.LeaseSpec{
		HolderIdentity: &name, LeaseDurationSeconds: &duration, RenewTime: &now,
	}})
	if err != nil {
		return fmt.Errorf("encoding lease of node %s: %w", name, err)
	}
	_, err = leases.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &duration, RenewTime: &now},
		}, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("renewing lease of node %s: %w", name, err)
	}
	return nil
}
