package clusters

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

// identity returns the UID of the cluster's namespace kube-system, which no other cluster has, and the same one always.
func (s *session) identity(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: "kube-system"}, namespace); err != nil {
		return "", err
	}
	return string(namespace.UID), nil
}

// turned says what became of a cluster besides that it answers or not.
type turned string

const (
	// same means that the session can go on.
	same turned = ""
	// another means that another cluster answers.
	another turned = "another cluster answers"
	// earlier means that the cluster's storage was restored: it holds what it held earlier. Watches that began before would be silent until
	// it has come as far again, and caches would show what is no more.
	earlier turned = "the cluster was restored to an earlier state"
)

// probe asks the cluster whether it is ready, the same as before, and no older than before.
func (s *session) probe(ctx context.Context) (turned, *connection.Problem) {
	if err := s.health.Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return same, problem("asking whether the cluster is ready", err)
	}
	id, err := s.identity(ctx)
	if err != nil {
		return same, problem("reading namespace kube-system", err)
	}
	if id != s.id {
		return another, nil
	}
	seen := s.seen() // before the question: what is seen meanwhile is newer than the answer may be
	var list appsv1.DeploymentList
	if err := s.client.List(ctx, &list, client.Limit(1), client.MatchingLabels{keys.HubID: s.HubID}); err != nil {
		return same, problem("listing Deployments", err)
	}
	if seen != "" && older(list.ResourceVersion, seen) {
		return earlier, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = list.ResourceVersion
	return same, nil
}

// seen returns the newest revision of the cluster's storage that a probe or a cache has seen.
func (s *session) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := s.newest
	for _, informer := range s.informers {
		if shared, ok := informer.(interface{ GetStore() toolscache.Store }); ok {
			if version := shared.GetStore().LastStoreSyncResourceVersion(); version != "" && (newest == "" || older(newest, version)) {
				newest = version
			}
		}
	}
	return newest
}

func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// problem says what an error means for a connection.
func problem(doing string, err error) *connection.Problem {
	out := &connection.Problem{Reason: connection.Unreachable, Message: fmt.Sprintf("%s: %v", doing, err)}
	var unknownAuthority x509.UnknownAuthorityError
	var invalidCertificate x509.CertificateInvalidError
	var wrongHost x509.HostnameError
	switch {
	case apierrors.IsUnauthorized(err), errors.As(err, &unknownAuthority), errors.As(err, &invalidCertificate), errors.As(err, &wrongHost):
		out.Reason = connection.CredentialsInvalid
	case apierrors.IsForbidden(err):
		out.Reason = connection.Forbidden
	default:
		out.Message = connection.Unreached + out.Message
	}
	return out
}

// unversioned returns a configuration for what has no group and no version, such as /readyz.
func unversioned(config *rest.Config, o *Options) *rest.Config {
	out := rest.CopyConfig(config)
	out.NegotiatedSerializer = serializer.NewCodecFactory(o.Scheme).WithoutConversion()
	return out
}
