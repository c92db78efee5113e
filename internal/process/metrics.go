package process

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// MetricsAccess says whether readers of metrics on other machines need the right to read them.
type MetricsAccess string

const (
	// OpenMetrics are for everybody.
	OpenMetrics MetricsAccess = "Open"
	// AuthorizedMetrics are served by HTTPS to those who may get their path, and on this machine to everybody.
	AuthorizedMetrics MetricsAccess = "Authorized"
)

// MetricsOptions says how metrics are served at an address.
func MetricsOptions(address string, access MetricsAccess) metricsserver.Options {
	options := metricsserver.Options{BindAddress: address}
	if access == AuthorizedMetrics && !isLoopback(address) {
		options.SecureServing, options.FilterProvider = true, authorized
	}
	return options
}

// isLoopback reports whether only this machine reaches an address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// authorized returns a filter that lets those through who may read a path, as the API server says.
func authorized(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	c, err := client.New(config, client.Options{HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status, err := mayRead(r.Context(), c, r)
			if err != nil {
				log.Error(err, "A reader of metrics can't be verified")
			}
			if status != http.StatusOK {
				http.Error(w, http.StatusText(status), status)
				return
			}
			next.ServeHTTP(w, r)
		}), nil
	}, nil
}

// mayRead returns StatusOK if the bearer of the request's token may get its path.
func mayRead(ctx context.Context, c client.Client, r *http.Request) (int, error) {
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found {
		return http.StatusUnauthorized, nil
	}
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := c.Create(ctx, who); err != nil {
		return http.StatusInternalServerError, fmt.Errorf("asking whose a token is: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)},
	}}
	for key, values := range user.Extra {
		may.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	if err := c.Create(ctx, may); err != nil {
		return http.StatusInternalServerError, fmt.Errorf("asking for the rights of %s: %w", user.Username, err)
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
