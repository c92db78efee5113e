package analysis

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// CredentialsType is the type of Secrets that checks may name. No other Secret is sent anywhere.
const CredentialsType corev1.SecretType = "rollouts.kruise.io/credentials"

// Keys of such Secrets.
const (
	originKey   = "origin"
	tokenKey    = "token"
	usernameKey = "username"
	passwordKey = "password"
)

// authorize adds the credentials of a Secret to a request, if it goes to the server that they are for.
func (r *Runner) authorize(request *http.Request, namespace, name string) error {
	var secret corev1.Secret
	err := r.Secrets.Get(request.Context(), types.NamespacedName{Namespace: namespace, Name: name}, &secret)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the managers may not read Secret %s: bind the ClusterRole kruise-rollout-credentials-reader in this namespace", name)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no Secret %s", name)
	case err != nil:
		return fmt.Errorf("reading Secret %s: %w", name, err)
	case secret.Type != CredentialsType:
		return fmt.Errorf("the Secret %s is of type %s, and not of type %s", name, secret.Type, CredentialsType)
	}
	of := strings.TrimSpace(string(secret.Data[originKey]))
	at, err := url.Parse(of)
	if err != nil || origin(at) != origin(request.URL) {
		return fmt.Errorf("the Secret %s is for another server: its key origin has to be %s", name, origin(request.URL))
	}
	if token := strings.TrimSpace(string(secret.Data[tokenKey])); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	if len(secret.Data[usernameKey]) == 0 {
		return fmt.Errorf("the Secret %s has neither token nor username", name)
	}
	request.SetBasicAuth(string(secret.Data[usernameKey]), string(secret.Data[passwordKey]))
	return nil
}

// origin returns what tells servers apart: scheme, host and port.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
