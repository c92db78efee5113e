package manager

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seed-69ecc383/kruise/internal/clusters"
	"github.com/seed-69ecc383/kruise/internal/controller/uniteddeployment"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/members"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

// addClusters fills in what connects to other clusters; nothing if the gate leaves it out.
func (s *settings) addClusters(ctx context.Context, mgr ctrlmanager.Manager, live client.Client) error {
	if !s.gates.Enabled(features.UnitedDeploymentMultiCluster) {
		return nil
	}
	namespace := &corev1.Namespace{}
	if err := live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return fmt.Errorf("reading what identifies the cluster: %w", err)
	}
	s.hubID = string(namespace.UID)
	var programs clusters.Programs
	if s.ClusterProviderFile != "" {
		var err error
		if programs, err = clusters.ReadPrograms(s.ClusterProviderFile); err != nil {
			return err
		}
	}
	registry := clusters.New(clusters.Options{
		Hub: live, HubID: s.hubID, Scheme: mgr.GetScheme(), UserAgent: mgr.GetConfig().UserAgent, Programs: programs,
		Changed: func(owner types.UID) { s.members.Changed(owner) }, Times: connection.Usual(), Now: s.clock.Now,
		Log: log.Log.WithName("clusters"),
	})
	s.members = members.New(members.Options{
		Tombstones: &members.Tombstones{Hub: live, Namespace: s.Webhook.PodNamespace},
		Registry:   members.Over(registry), HubID: s.hubID, Scheme: mgr.GetScheme(), Lists: uniteddeployment.Lists, Now: s.clock.Now,
		Events: mgr.GetEventRecorderFor("uniteddeployment-controller"), //nolint:staticcheck // events of core/v1 are what users' tools read
	})
	sweeper := &members.Sweeper{Members: s.members, Wants: uniteddeployment.Wants(live)}
	if err := errors.Join(mgr.Add(registry), mgr.Add(sweeper)); err != nil {
		return fmt.Errorf("adding the connections to other clusters: %w", err)
	}
	return nil
}

func (s settings) unitedDeployment() uniteddeployment.Options {
	if s.members == nil {
		return uniteddeployment.Options{}
	}
	return uniteddeployment.Options{Clusters: s.members, HubID: s.hubID}
}
