package cloneset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/loop"
)

// kind is that of the owner in references and events.
func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("CloneSet") }

// Kind is the controller of CloneSets.
func Kind(o Options) loop.Kind[*v1beta1.CloneSet, Survey, v1beta1.CloneSetStatus] {
	return loop.Kind[*v1beta1.CloneSet, Survey, v1beta1.CloneSetStatus]{
		Name:      "cloneset",
		Owns:      []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}},
		Read:      o.read,
		Plan:      Plan,
		Meanwhile: Meanwhile,
		Status:    Status,
		Final:     saysComplete,
	}
}

func (o Options) read(ctx context.Context, r loop.Reads, set *v1beta1.CloneSet) (Survey, error) {
	s, err := Observe(ctx, r.Reader, set, r.Now)
	if err == nil && o.PreDownload {
		s.PullJobs, err = r.ImagePullJobs(ctx, set.Namespace, set.UID)
	}
	if err != nil {
		return Survey{}, err
	}
	s.Options, s.Taken = o, r.Taken
	v := Take(s)
	return v, confirm(ctx, r.Reader, r.Live, v)
}
