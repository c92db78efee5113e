package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// plugin makes a program that gives credentials, and the configuration that names it, and returns the arguments with which the daemon finds them.
func (s *site) plugin(script string) []string {
	s.Helper()
	must(s.T, os.WriteFile(filepath.Join(s.dir, "cloud"), []byte("#!/bin/sh\necho >> "+s.dir+"/asked\n"+script+"\n"), 0o700))
	config := filepath.Join(s.dir, "plugins.yaml")
	must(s.T, os.WriteFile(config, []byte(`{apiVersion: kubelet.config.k8s.io/v1, kind: CredentialProviderConfig, providers: [
  {name: cloud, matchImages: [registry.plugin.com], defaultCacheDuration: 1h, apiVersion: credentialprovider.kubelet.k8s.io/v1}]}`), 0o600))
	return []string{"--plugin-config-file", config, "--plugin-bin-dir", s.dir}
}

// openedBy returns who opened the registry for each image that was pulled.
func (s *site) openedBy() map[string]string {
	out := map[string]string{}
	for _, request := range s.runtime.Pulls() {
		out[request.Image.Image] = request.Auth.GetUsername() + ":" + request.Auth.GetPassword()
	}
	return out
}

func (s *site) expectOpenedBy(image, want string) {
	s.Helper()
	if got := s.openedBy()[image]; got != want {
		s.Errorf("%s is pulled by %q, want %q", image, got, want)
	}
}

func TestCredentialsOfAPlugin(t *testing.T) {
	s := newSite(t, "cloudy")
	s.serve()
	s.start(s.plugin(`echo '{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Registry","auth":{"registry.plugin.com":{"username":"u","password":"p"}}}'`)...)
	s.want(map[string]v1beta1.ImageSpec{
		"registry.plugin.com/a": {Tags: []v1beta1.ImageTagSpec{tag("1")}}, "nginx": {Tags: []v1beta1.ImageTagSpec{tag("1")}},
	})
	s.phases(map[string]v1beta1.ImagePullPhase{"registry.plugin.com/a:1": v1beta1.ImagePhaseSucceeded, "nginx:1": v1beta1.ImagePhaseSucceeded})
	s.want(map[string]v1beta1.ImageSpec{"registry.plugin.com/b": {Tags: []v1beta1.ImageTagSpec{tag("2")}}})
	s.phases(map[string]v1beta1.ImagePullPhase{"registry.plugin.com/b:2": v1beta1.ImagePhaseSucceeded})
	s.expectOpenedBy("registry.plugin.com/a:1", "u:p")
	s.expectOpenedBy("registry.plugin.com/b:2", "u:p")
	s.expectOpenedBy("nginx:1", ":")
	asked, err := os.ReadFile(filepath.Join(s.dir, "asked"))
	must(t, err)
	if runs := strings.Count(string(asked), "\n"); runs != 1 {
		t.Errorf("the plugin was run %d times, want once: the second pull is within the time that its answer is kept", runs)
	}
}

// TestPluginsThatHang: the image is pulled all the same.
func TestPluginsThatHang(t *testing.T) {
	s := newSite(t, "foggy")
	s.serve()
	s.start(s.plugin("sleep 600")...)
	s.want(map[string]v1beta1.ImageSpec{"registry.plugin.com/a": {Tags: []v1beta1.ImageTagSpec{tag("1", func(t *v1beta1.ImageTagSpec) {
		seconds, none := int32(10), int32(0)
		t.PullPolicy.TimeoutSeconds, t.PullPolicy.BackoffLimit = &seconds, &none
	})}}})
	s.phases(map[string]v1beta1.ImagePullPhase{"registry.plugin.com/a:1": v1beta1.ImagePhaseSucceeded})
	s.expectOpenedBy("registry.plugin.com/a:1", ":")
}

// TestCredentialsThatComeLate: an attempt after they have come has them, in the same round.
func TestCredentialsThatComeLate(t *testing.T) {
	s := newSite(t, "waiting")
	s.runtime.OnPull = func(_ context.Context, request *runtimeapi.PullImageRequest) error {
		if request.Auth.GetUsername() != "u" {
			return errors.New("unauthorized: who are you?")
		}
		return nil
	}
	s.serve()
	s.start()
	patient := tag("1", func(t *v1beta1.ImageTagSpec) {
		retries := int32(20)
		t.PullPolicy.BackoffLimit = &retries
	})
	s.want(map[string]v1beta1.ImageSpec{"late.io/app": {Tags: []v1beta1.ImageTagSpec{patient}}})
	eventually(t, "the NodeImage says what the registry says", func() error {
		status := s.nodeImage().Status.ImageStatuses["late.io/app"]
		if len(status.Tags) != 1 || !strings.Contains(status.Tags[0].Message, "who are you?") || status.Tags[0].Phase != v1beta1.ImagePhasePulling {
			return fmt.Errorf("it says %+v", status.Tags)
		}
		return nil
	})
	s.want(map[string]v1beta1.ImageSpec{"late.io/app": {Tags: []v1beta1.ImageTagSpec{s.sealed("late.io/app", patient, "u")}}})
	image := s.phases(map[string]v1beta1.ImagePullPhase{"late.io/app:1": v1beta1.ImagePhaseSucceeded})
	if got := image.Status.ImageStatuses["late.io/app"].Tags[0]; got.Version != 0 || got.Message != "" {
		t.Errorf("it ended as %+v, want the round that it began", got)
	}
}
