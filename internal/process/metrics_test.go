package process

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestMetricsAreServedToWhoMayReadThem, and on the loopback to everybody.
func TestMetricsAreServedToWhoMayReadThem(t *testing.T) {
	for address, open := range map[string]bool{
		"127.0.0.1:8080": true, "localhost:8080": true, "[::1]:8080": true, ":8080": false, "0.0.0.0:8080": false, "10.0.0.1:8080": false,
	} {
		if got := MetricsOptions(address, AuthorizedMetrics); open != (got.FilterProvider == nil) ||
			open == got.SecureServing {
			t.Errorf("metrics at %s are open: %t", address, got.FilterProvider == nil)
		}
	}
	if got := MetricsOptions(":8080", OpenMetrics); got.FilterProvider != nil || got.SecureServing {
		t.Error("metrics are protected although nobody asks for it")
	}
	// The API server knows two tokens; the account of one may get /metrics.
	api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			switch o := o.(type) {
			case *authenticationv1.TokenReview:
				o.Status.Authenticated = o.Spec.Token == "prometheus" || o.Spec.Token == "other"
				o.Status.User.Username = o.Spec.Token
			case *authorizationv1.SubjectAccessReview:
				a := o.Spec.NonResourceAttributes
				o.Status.Allowed = o.Spec.User == "prometheus" && a.Path == "/metrics" && a.Verb == "get"
			}
			return nil
		},
	})
	for header, want := range map[string]int{
		"": http.StatusUnauthorized, "Basic prometheus": http.StatusUnauthorized, "Bearer nobody": http.StatusUnauthorized,
		"Bearer other": http.StatusForbidden, "Bearer prometheus": http.StatusOK,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
		r.Header.Set("Authorization", header)
		if got, err := mayRead(t.Context(), api, r); got != want || err != nil {
			t.Errorf("%q is answered by %d, %v, want %d", header, got, err, want)
		}
	}
}
