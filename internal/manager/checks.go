package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/internal/admission/protection"
)

// oldestServer is the first Kubernetes with the resize subresource of Pods.
const oldestServer = "1.32"

// crds are the kinds that must be installed.
func crds() []string {
	return []string{
		"advancedcronjobs.apps.kruise.io", "broadcastjobs.apps.kruise.io",
		"clonesets.apps.kruise.io", "containerrecreaterequests.apps.kruise.io", "daemonsets.apps.kruise.io",
		"ephemeraljobs.apps.kruise.io",
		"imagelistpulljobs.apps.kruise.io", "imagepulljobs.apps.kruise.io", "nodeimages.apps.kruise.io",
		"nodepodprobes.apps.kruise.io", "persistentpodstates.apps.kruise.io", "podprobemarkers.apps.kruise.io",
		"resourcedistributions.apps.kruise.io", "sidecarsets.apps.kruise.io", "statefulsets.apps.kruise.io",
		"uniteddeployments.apps.kruise.io",
		"workloadspreads.apps.kruise.io",
		"podunavailablebudgets.policy.kruise.io",
	}
}

// check finds out before anything is started whether the cluster is one that the manager can work in, and says everything that stands
// against it at once. It returns the rights that single controllers lack, by the source of their events.
func (s settings) check(ctx context.Context, c client.Client, d discovery.ServerVersionInterface) (map[string][]string, error) {
	if err := checkVersion(d); err != nil {
		return nil, err
	}
	lacking, err := s.checkRights(ctx, &account{client: c, known: map[string]bool{}})
	return lacking, errors.Join(checkCRDs(ctx, c), err)
}

// checkRights returns what single controllers lack. It is an error if nothing works.
func (s settings) checkRights(ctx context.Context, a *account) (map[string][]string, error) {
	all, err := a.lacks(ctx, s.needs())
	if err != nil {
		return nil, err
	}
	isFatal, lacking := len(all) > 0, map[string][]string{}
	parts := map[string][]need{protection.EventSource: s.protectionNeeds()}
	for _, c := range s.controllers(nil) {
		parts[c.kind.EventSource()] = c.needs
	}
	for name, needs := range parts {
		missing, err := a.lacks(ctx, needs)
		if err != nil {
			return nil, err
		}
		if len(missing) > 0 {
			lacking[name] = missing
			all = append(all, missing...)
		}
	}
	if !isFatal {
		return lacking, nil
	}
	slices.Sort(all)
	const advice = "grant it the ClusterRole kruise-manager-role and the other roles in config/rbac"
	return nil, fmt.Errorf("the manager's account may not: %s; %s", strings.Join(slices.Compact(all), ", "), advice)
}

func checkVersion(d discovery.ServerVersionInterface) error {
	info, err := d.ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	server, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return fmt.Errorf("reading the API server's version %q: %w", info.GitVersion, err)
	}
	if server.LessThan(version.MustParseGeneric(oldestServer)) {
		return fmt.Errorf("the API server is %s, which is too old: Kruise needs Kubernetes %s or later", info.GitVersion, oldestServer)
	}
	return nil
}

func checkCRDs(ctx context.Context, c client.Client) error {
	var missing []string
	for _, name := range crds() {
		err := c.Get(ctx, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
		case err != nil:
			return fmt.Errorf("looking for CRD %s: %w", name, err)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("CRDs are not installed: %s; install them with: kubectl apply --server-side -k config/crd",
			strings.Join(missing, ", "))
	}
	return nil
}
