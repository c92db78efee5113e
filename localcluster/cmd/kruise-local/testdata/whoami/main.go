// Command whoami asks the API server, from inside a Pod and by nothing but what every Pod is given, who it is.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

const review = `{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}`

func main() {
	answer, err := ask()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(answer)
}

func ask() (string, error) {
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return "", err
	}
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return "", err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	server := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	request, err := http.NewRequest(http.MethodPost, "https://"+server+"/apis/authentication.k8s.io/v1/selfsubjectreviews",
		strings.NewReader(review))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
