package uniteddeployment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/test/sim/simulate"
)

var errAway = errors.New("no answer")

func (l *session) Cached() client.Reader { return l.cache }

func (l *session) Live() client.Reader { return live{l} }

func (l *session) Writer() apply.Writer { return witness{l.client, l} }

func (l *session) Seen(kind schema.GroupVersionKind) (string, error) {
	if l.s.trusts {
		return "999999999", nil
	}
	return l.cache.Seen(context.Background(), kind)
}

func (l *session) Serves(schema.GroupVersionKind) (served, readable bool) { return true, true }

// live reads another cluster, if that answers.
type live struct{ *session }

func (l live) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	if !l.remote.up {
		return errAway
	}
	return l.client.Get(ctx, key, into, o...)
}

func (l live) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	if !l.remote.up {
		return errAway
	}
	return l.client.List(ctx, list, o...)
}

// witness sees all that is written in another cluster.
type witness struct {
	apply.Writer
	*session
}

func (w witness) Create(ctx context.Context, o plan.Object) error {
	w.judge("create", o)
	if len(o.GetOwnerReferences()) > 0 {
		w.breaks(ruleNoOwner, "%s", o.GetName())
	}
	if !w.remote.up {
		return errAway
	}
	return w.Writer.Create(ctx, o)
}

func (w witness) Patch(ctx context.Context, o plan.Object, subresource string, kind types.PatchType, patch []byte) error {
	w.judge("patch", o)
	if !w.remote.up {
		return errAway
	}
	return w.Writer.Patch(ctx, o, subresource, kind, patch)
}

func (w witness) Delete(ctx context.Context, o plan.Object, conditions metav1.Preconditions) (string, error) {
	w.judge("delete", o)
	if !w.remote.up {
		return "", errAway
	}
	return w.Writer.Delete(ctx, o, conditions)
}

func (w witness) Read(ctx context.Context, o plan.Object) error {
	if !w.remote.up {
		return errAway
	}
	return w.Writer.Read(ctx, o)
}

func (w witness) breaks(rule, format string, args ...any) {
	w.s.broken = append(w.s.broken, fmt.Sprintf("at revision %d, in %s: %s: %s", w.s.Cluster.Revision(), w.remote.id, rule, fmt.Sprintf(format, args...)))
}

// wasRecorded reports whether a UnitedDeployment has ever recorded the cluster.
func (w witness) wasRecorded(owner string) bool {
	return slices.ContainsFunc(w.s.Cluster.History(), func(c simulate.Change) bool {
		set, is := c.After.(*v1beta1.UnitedDeployment)
		return is && string(set.UID) == owner && slices.ContainsFunc(set.Status.MemberClusters, w.isThis)
	})
}

func (w witness) isThis(r v1beta1.MemberCluster) bool { return r.ClusterID == w.remote.id }

// judge says what is wrong with a write, by what the hub has stored.
func (w witness) judge(verb string, o plan.Object) {
	if w.s.rested {
		w.breaks("a restart writes nothing", "%s %s", verb, o.GetName())
	}
	if verb != "create" {
		stored := w.remote.Cluster.Get(w.remote.Cluster.KeyOf(o))
		if stored == nil {
			return // of what is gone
		}
		o = stored.(plan.Object)
	}
	if o.GetLabels()[keys.HubID] != hubID {
		w.breaks(ruleOthers, "%s %s", verb, o.GetName())
	}
	set := w.s.set()
	if set == nil || string(set.UID) != o.GetLabels()[keys.HubOwnerUID] {
		// What is under way when a cluster is let go may still be written, and is swept.
		if verb != "delete" && !w.wasRecorded(o.GetLabels()[keys.HubOwnerUID]) {
			w.breaks(ruleRecorded, "%s %s of a UnitedDeployment that is not there", verb, o.GetName())
		}
		return
	}
	isRecorded := slices.ContainsFunc(set.Status.MemberClusters, w.isThis)
	switch {
	case w.s.sweeping && isRecorded:
		w.breaks(ruleWanted, "%s %s", verb, o.GetName())
	case !w.s.sweeping && (!isRecorded || !isElsewhere(set)):
		w.breaks(ruleRecorded, "%s %s", verb, o.GetName())
	}
}
