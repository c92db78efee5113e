package member

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

// Place names a cluster object of the hub.
type Place struct{ Kind, Namespace, Name string }

// String returns the namespace and the name.
func (p Place) String() string { return p.Namespace + "/" + p.Name }

// Key returns the kind, the namespace and the name, by which plans and memory know the cluster.
func (p Place) Key() string { return p.Kind + "/" + p.Namespace + "/" + p.Name }

// PlaceOf returns the place of a key.
func PlaceOf(key string) Place {
	kind, rest, _ := strings.Cut(key, "/")
	namespace, name, _ := strings.Cut(rest, "/")
	return Place{kind, namespace, name}
}

// Seen is a cluster as it stands.
type Seen struct {
	Reason  connection.Reason
	Message string
	// ID is the UID of its namespace kube-system; empty if it was never reached.
	ID          string
	LastContact time.Time
	// Unselected says that the labels of the cluster object are not those that the UnitedDeployment asks for.
	Unselected bool
}

// Verdict says whether a cluster can be read and written for a UnitedDeployment, and if not, why.
type Verdict struct {
	Reason  connection.Reason
	Message string
}

// Ready reports whether the cluster can be read and written.
func (v Verdict) Ready() bool { return v.Reason == connection.Connected }

// Judge says how a cluster stands for a UnitedDeployment that has recorded it so; record is nil if it has not. A cluster object that leads
// to another cluster than it did is not followed: the workload in the first one may still run.
func Judge(place Place, record *v1beta1.MemberCluster, now Seen) Verdict {
	changed := record != nil && record.ClusterID != "" && now.ID != "" && record.ClusterID != now.ID
	switch {
	case now.Reason == connection.NotFound, now.Reason == connection.Connecting: // of which the labels are not known either
		return Verdict{now.Reason, now.Message}
	case now.Unselected:
		return Verdict{connection.NotSelected, fmt.Sprintf("cluster object %s has not all labels of clusterRegistry.selector", place)}
	case changed:
		return Verdict{connection.IDChanged, fmt.Sprintf("cluster object %s led to the cluster %s and leads to %s now: "+
			"let it lead to the former one, or remove the subset and add one of another name", place, record.ClusterID, now.ID)}
	default:
		return Verdict{now.Reason, now.Message}
	}
}

// MayWrite reports whether the cluster may be written to: it can be reached, and it is recorded in the stored status that this cluster, and
// no other, may hold workloads. So what was written can always be found again, whatever the manager or the cluster object becomes.
func MayWrite(place Place, stored *v1beta1.MemberCluster, now Seen) bool {
	return stored != nil && stored.ClusterID != "" && stored.ClusterID == now.ID && Judge(place, stored, now).Ready()
}

// Find returns the record of a cluster; nil if there is none.
func Find(records []v1beta1.MemberCluster, place Place) *v1beta1.MemberCluster {
	for i := range records {
		if placeOf(&records[i]) == place {
			return &records[i]
		}
	}
	return nil
}

func placeOf(r *v1beta1.MemberCluster) Place { return Place{r.Kind, r.Namespace, r.Name} }

// Recorded returns the places of records.
func Recorded(records []v1beta1.MemberCluster) (out []Place) {
	for i := range records {
		out = append(out, placeOf(&records[i]))
	}
	return out
}

// Left says whether something is left in a cluster that no subset is in any more.
type Left string

const (
	// Unknown means that the cluster could not be asked.
	Unknown Left = "Unknown"
	// Something means that a workload is there.
	Something Left = "Something"
	// Nothing means that the cluster itself has said that there is none.
	Nothing Left = "Nothing"
	// Abandoned means that whatever is there is left there, and a tombstone says so. That counts only as long as the cluster is lost: of
	// one that answers again, it is the cluster that says when nothing is left.
	Abandoned Left = "Abandoned"
)

// Records returns the clusters that hold, or may hold, workloads, sorted: those that subsets are in, once they were reached, and those of
// former subsets until nothing is left there. An identity that was recorded stays.
func Records(before []v1beta1.MemberCluster, wanted []Place, seen func(Place) Seen, left func(Place) Left) []v1beta1.MemberCluster {
	var out []v1beta1.MemberCluster
	for _, place := range wanted {
		now, record := seen(place), Find(before, place)
		switch {
		case Find(out, place) != nil: // of another subset
		case record != nil:
			out = append(out, renewed(*record, v1beta1.MemberClusterActive, now))
		case Judge(place, nil, now).Ready():
			fresh := v1beta1.MemberCluster{Kind: place.Kind, Namespace: place.Namespace, Name: place.Name, ClusterID: now.ID}
			out = append(out, renewed(fresh, v1beta1.MemberClusterActive, now))
		}
	}
	for i := range before {
		place := placeOf(&before[i])
		if slices.Contains(wanted, place) {
			continue
		}
		now := seen(place)
		phase := v1beta1.MemberClusterDraining
		isLost := !MayWrite(place, &before[i], now)
		if now.Reason == connection.Connecting {
			isLost = before[i].Phase == v1beta1.MemberClusterLost
		}
		if isLost {
			phase = v1beta1.MemberClusterLost
		}
		if is := left(place); is != Nothing && (is != Abandoned || !isLost) {
			out = append(out, renewed(before[i], phase, now))
		}
	}
	slices.SortFunc(out, func(a, b v1beta1.MemberCluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// renewed returns a record as it stands. The time of the last contact is written when something else is, or when it has stopped. While it
// is not known yet how the cluster stands, the record stays as it was, and so do the words of one that can't be reached: they may differ
// with each attempt.
func renewed(record v1beta1.MemberCluster, phase v1beta1.MemberClusterPhase, now Seen) v1beta1.MemberCluster {
	verdict, message := Judge(placeOf(&record), &record, now), ""
	switch {
	case verdict.Reason == connection.Connecting,
		verdict.Reason == connection.Unreachable && strings.HasPrefix(record.Message, connection.Unreached):
		message = record.Message
	case !verdict.Ready():
		message = verdict.Message
	}
	if record.Phase != phase || record.Message != message {
		record.Phase, record.Message = phase, message
		if !now.LastContact.IsZero() {
			record.LastContactTime = &metav1.Time{Time: now.LastContact}
		}
	}
	return record
}
