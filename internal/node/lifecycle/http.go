package lifecycle

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// maxRedirects is how many redirects to the same host are followed.
	maxRedirects = 10
	// maxBody is how much of a response is read, in bytes.
	maxBody = 10 << 10
)

// Endpoint is a server in a container.
type Endpoint struct {
	Host string
	Port int
	// UserAgent is used when the headers of a request have none.
	UserAgent string
}

// Response is the response to a request.
type Response struct {
	// Status is the status code; 0 when there was no response.
	Status int
	// Body is the beginning of the body.
	Body []byte
}

// Get sends the request of a hook or a probe. An error can come with a response: of too many redirects, or with a body that could not be
// read.
//
// The daemon is on the network of the node, and a Pod must not have it send requests elsewhere: it uses no proxy, and a redirect to another
// host is a response like any other. It trusts every certificate, as the kubelet does, because the Pod has issued it itself.
func (e Endpoint) Get(ctx context.Context, handler *corev1.HTTPGetAction) (Response, error) {
	scheme := strings.ToLower(cmp.Or(string(handler.Scheme), "http"))
	url := scheme + "://" + net.JoinHostPort(e.Host, strconv.Itoa(e.Port)) + "/" + strings.TrimPrefix(handler.Path, "/")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return Response{}, err
	}
	e.setHeaders(request, handler.HTTPHeaders)
	c := &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: checkRedirect,
	}
	answer, err := c.Do(request)
	if answer == nil {
		return Response{}, err
	}
	defer func() { _ = answer.Body.Close() }() // it has been read
	if err != nil {
		return Response{Status: answer.StatusCode}, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxBody))
	return Response{Status: answer.StatusCode, Body: body}, err
}

func checkRedirect(next *http.Request, via []*http.Request) error {
	if next.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("there were %d redirects", maxRedirects)
	}
	if via[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
		next.Header.Del("Authorization") // what was meant to be encrypted must not be sent in the clear
	}
	return nil
}

func (e Endpoint) setHeaders(request *http.Request, headers []corev1.HTTPHeader) {
	for _, h := range headers {
		if http.CanonicalHeaderKey(h.Name) == "Host" {
			request.Host = h.Value
			continue
		}
		request.Header.Add(h.Name, h.Value)
	}
	for name, value := range map[string]string{"User-Agent": e.UserAgent, "Accept": "*/*"} {
		if _, has := request.Header[name]; !has {
			request.Header.Set(name, value)
		}
	}
}
