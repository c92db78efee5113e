package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// row is what a member itself says of its part of the UnitedDeployment.
type row struct {
	pods, wanted, ready, updated int
	// share is maxUnavailable of its Deployment.
	share string
}

// unavailable is how many of the wanted Pods are not in service.
func (r row) unavailable() int { return max(r.wanted-r.ready, 0) }

// memberTable is the table of members.
type memberTable struct {
	*fleet
	// rows are what was last seen, by member.
	rows map[*member]row
	// most is the largest number of Pods that were unavailable at a time; -1 until all have been ready.
	most int
}

// readLimit is how long a member may take to answer; one that has just been stopped does not.
const readLimit = 2 * time.Second

// look reads all members at the same time: what one says after the other would not add up.
func (t *memberTable) look(ctx context.Context, revision string) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	seen := make([]*row, len(t.members))
	var reading sync.WaitGroup
	for i, m := range t.members {
		if m.isStopped {
			continue
		}
		reading.Go(func() {
			if r, err := m.read(ctx, revision); err == nil { // else what was seen before stays
				seen[i] = &r
			}
		})
	}
	reading.Wait()
	for i, r := range seen {
		if r != nil {
			t.rows[t.members[i]] = *r
		}
	}
	if t.most >= 0 {
		t.most = max(t.most, t.unavailable())
	}
}

func (m *member) read(ctx context.Context, revision string) (row, error) {
	var r row
	var deployments appsv1.DeploymentList
	if err := m.Client.List(ctx, &deployments, client.InNamespace(namespace)); err != nil {
		return r, err
	}
	for i := range deployments.Items {
		spec := &deployments.Items[i].Spec
		r.wanted += int(*spec.Replicas)
		r.share = spec.Strategy.RollingUpdate.MaxUnavailable.String()
	}
	var pods corev1.PodList
	if err := m.Client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return r, err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		r.pods++
		if !pod.IsReady(p) || p.DeletionTimestamp != nil {
			continue
		}
		r.ready++
		if p.Labels[keys.SubsetRevision] == revision {
			r.updated++
		}
	}
	return r, nil
}

func (t *memberTable) sum(of func(row) int) (n int) {
	for _, r := range t.rows {
		n += of(r)
	}
	return n
}

func (t *memberTable) unavailable() int { return t.sum(row.unavailable) }

// picture tells of a UnitedDeployment by what the hub says and by what the members say.
func (t *memberTable) picture(set *v1beta1.UnitedDeployment) picture {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "  CLUSTER\tTHE HUB SAYS\tPODS\tREADY\tUPDATED\tMAY BE UNAVAILABLE")
	for i, m := range t.members {
		r, name := t.rows[m], m.name
		if m.isStopped {
			name += " (stopped)"
		}
		fmt.Fprintf(table, "  %s\t%s\t%d\t%d\t%d\t%s\n", name, cmp.Or(clusterReason(set, i), "-"), r.pods, r.ready, r.updated, r.share)
	}
	_ = table.Flush() // a strings.Builder does not fail
	counts := fmt.Sprintf("UPDATED %d of %d", t.sum(func(r row) int { return r.updated }), t.sum(func(r row) int { return r.wanted }))
	if t.most >= 0 {
		counts += fmt.Sprintf("  UNAVAILABLE %d of %d, %d at most so far", t.unavailable(), budget, t.most)
	}
	counts += fmt.Sprintf("  WAVE %s  %s", cmp.Or(set.Status.Wave, "-"), state(set))
	return picture{counts: counts, table: out.String()}
}

// state is why subsets wait, or whether all are updated.
func state(set *v1beta1.UnitedDeployment) string {
	if c := condition(set, v1beta1.UnitedDeploymentSubsetUpdated); c.Status == corev1.ConditionFalse {
		return c.Reason
	}
	if condition(set, v1beta1.UnitedDeploymentUpdated).Status == corev1.ConditionTrue {
		return "updated"
	}
	return "updating"
}

func condition(set *v1beta1.UnitedDeployment, t v1beta1.UnitedDeploymentConditionType) v1beta1.UnitedDeploymentCondition {
	i := slices.IndexFunc(set.Status.Conditions, func(c v1beta1.UnitedDeploymentCondition) bool { return c.Type == t })
	if i < 0 {
		return v1beta1.UnitedDeploymentCondition{}
	}
	return set.Status.Conditions[i]
}

// clusterReason is why the cluster of a subset can be used or not; the subsets are in the order of the members.
func clusterReason(set *v1beta1.UnitedDeployment, subset int) string {
	if subset >= len(set.Status.SubsetStatuses) {
		return ""
	}
	for _, c := range set.Status.SubsetStatuses[subset].Conditions {
		if c.Type == v1beta1.UnitedDeploymentSubsetClusterReady {
			return c.Reason
		}
	}
	return ""
}
