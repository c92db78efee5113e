// Package provision gives claims their volumes: directories of this machine.
//
// Promise: what an external provisioner and resizer of a cloud do, this does, at once. A claim that a Pod waits for
// gets a volume; one that asks for more becomes larger; the volume of a deleted claim goes with it.
package provision

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// Name is the provisioner that storage classes name.
const Name = "kruise.io/local-volume"

const (
	// The annotations of the contract between binder, scheduler and provisioners.
	annotationProvisioner   = "volume.kubernetes.io/storage-provisioner"
	annotationSelectedNode  = "volume.kubernetes.io/selected-node"
	annotationProvisionedBy = "pv.kubernetes.io/provisioned-by"
	workers                 = 16
	claimPrefix             = "claim:"
	volumePrefix            = "volume:"
)

// Provisioner acts on the claims of storage classes that name it.
type Provisioner struct {
	client  kubernetes.Interface
	folder  string
	factory informers.SharedInformerFactory
	claims  cache.SharedIndexInformer
	volumes cache.SharedIndexInformer
	classes cache.SharedIndexInformer
	queue   workqueue.TypedRateLimitingInterface[string]
}

// New makes a provisioner that keeps volumes in folder.
func New(client kubernetes.Interface, folder string) (*Provisioner, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	p := &Provisioner{
		client:  client,
		folder:  folder,
		factory: factory,
		claims:  factory.Core().V1().PersistentVolumeClaims().Informer(),
		volumes: factory.Core().V1().PersistentVolumes().Informer(),
		classes: factory.Storage().V1().StorageClasses().Informer(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](20*time.Millisecond, 10*time.Second)),
	}
	for prefix, informer := range map[string]cache.SharedIndexInformer{claimPrefix: p.claims, volumePrefix: p.volumes} {
		add := func(object any) {
			if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
				p.queue.Add(prefix + key)
			}
		}
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: add, UpdateFunc: func(_, now any) { add(now) },
		})
		if err != nil {
			return nil, fmt.Errorf("watching volumes: %w", err)
		}
	}
	return p, nil
}

// Run acts until ctx ends.
func (p *Provisioner) Run(ctx context.Context) error {
	p.factory.StartWithContext(ctx)
	for _, informer := range []cache.SharedIndexInformer{p.claims, p.volumes, p.classes} {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return errors.New("reading claims: stopped before the first answer")
		}
	}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { p.work(ctx) })
	}
	<-ctx.Done()
	p.queue.ShutDown()
	group.Wait()
	return nil
}

func (p *Provisioner) work(ctx context.Context) {
	for {
		key, end := p.queue.Get()
		if end {
			return
		}
		if err := p.sync(ctx, key); err != nil {
			klog.FromContext(ctx).Error(err, "Will try again", "key", key)
			p.queue.AddRateLimited(key)
		} else {
			p.queue.Forget(key)
		}
		p.queue.Done(key)
	}
}

func (p *Provisioner) sync(ctx context.Context, key string) error {
	if name, ok := cut(key, volumePrefix); ok {
		object, found, err := p.volumes.GetStore().GetByKey(name)
		if err != nil || !found {
			return err
		}
		return p.release(ctx, object.(*corev1.PersistentVolume))
	}
	name, _ := cut(key, claimPrefix)
	object, found, err := p.claims.GetStore().GetByKey(name)
	if err != nil || !found {
		return err
	}
	claim := object.(*corev1.PersistentVolumeClaim)
	if claim.Spec.VolumeName == "" {
		return p.provide(ctx, claim)
	}
	return p.expand(ctx, claim)
}

func cut(key, prefix string) (string, bool) {
	if len(key) < len(prefix) || key[:len(prefix)] != prefix {
		return "", false
	}
	return key[len(prefix):], true
}

// provide makes the volume of a claim that waits for one of ours.
func (p *Provisioner) provide(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Annotations[annotationProvisioner] != Name || claim.Spec.StorageClassName == nil || claim.DeletionTimestamp != nil {
		return nil
	}
	object, found, err := p.classes.GetStore().GetByKey(*claim.Spec.StorageClassName)
	if err != nil || !found {
		return err
	}
	class := object.(*storagev1.StorageClass)
	waits := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	if waits && claim.Annotations[annotationSelectedNode] == "" {
		return nil // no Pod needs it yet
	}
	volume := p.volumeFor(claim, class)
	if err := makeFolder(volume.Spec.HostPath.Path); err != nil {
		return fmt.Errorf("making volume of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	if _, err := p.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating volume of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// makeFolder makes the folder of a volume. Any user may write there, as a Pod's user is known to nobody here; folders around it are closed.
func makeFolder(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Chmod(path, 0o777) // whatever this process keeps from new files
}

// volumeFor is the volume of a claim. Its name follows from the claim, so that a repeated call makes no second one.
func (p *Provisioner) volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	directory := corev1.HostPathDirectoryOrCreate
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotationProvisionedBy: Name}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: reclaim,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(p.folder, name), Type: &directory},
			},
		},
	}
}

// release removes a volume of ours whose claim is gone.
func (p *Provisioner) release(ctx context.Context, volume *corev1.PersistentVolume) error {
	ours := volume.Annotations[annotationProvisionedBy] == Name && volume.Spec.HostPath != nil
	if !ours || volume.Status.Phase != corev1.VolumeReleased || volume.DeletionTimestamp != nil ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	// Only what volumeFor made is removed, whatever the path in the object says by now.
	if err := os.RemoveAll(filepath.Join(p.folder, filepath.Base(volume.Name))); err != nil {
		return fmt.Errorf("removing volume %s: %w", volume.Name, err)
	}
	if err := p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting volume %s: %w", volume.Name, err)
	}
	return nil
}

// expand makes the volume of a bound claim as large as the claim asks: first the volume, then what the claim says of it.
func (p *Provisioner) expand(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	want := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	have := claim.Status.Capacity[corev1.ResourceStorage]
	if claim.Status.Phase != corev1.ClaimBound || want.Cmp(have) <= 0 {
		return nil
	}
	object, found, err := p.volumes.GetStore().GetByKey(claim.Spec.VolumeName)
	if err != nil || !found {
		return err
	}
	volume := object.(*corev1.PersistentVolume)
	if volume.Annotations[annotationProvisionedBy] != Name {
		return nil
	}
	if size := volume.Spec.Capacity[corev1.ResourceStorage]; size.Cmp(want) < 0 {
		volume = volume.DeepCopy()
		volume.Spec.Capacity[corev1.ResourceStorage] = want
		if _, err := p.client.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("expanding volume %s: %w", volume.Name, err)
		}
	}
	claim = claim.DeepCopy()
	claim.Status.Capacity[corev1.ResourceStorage] = want
	claim.Status.Conditions = nil // Resizing, which the expand controller may have set
	if _, err := p.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("reporting size of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}
