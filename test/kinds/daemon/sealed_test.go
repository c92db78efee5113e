package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	rules "github.com/seed-69ecc383/kruise/internal/rules/pull"
	"github.com/seed-69ecc383/kruise/internal/rules/registry"
	"github.com/seed-69ecc383/kruise/internal/seal"
)

// sealed returns a tag with credentials of somebody, sealed for the key that the daemon has published by now, as a manager does it.
func (s *site) sealed(repository string, tag v1beta1.ImageTagSpec, user string) v1beta1.ImageTagSpec {
	s.Helper()
	text, err := json.Marshal([]registry.Credentials{{Username: user, Password: "p"}})
	must(s.T, err)
	context := rules.SealContext(s.node, rules.Reference{Repository: repository, Tag: tag.Tag}, user)
	sealed, err := seal.Seal(s.key(), text, context)
	must(s.T, err)
	tag.Credentials = []v1beta1.SealedCredentials{{Owner: user, Version: fmt.Sprintf("%x", s.key()[:8]), Sealed: sealed}}
	return tag
}

// key waits for that of the daemon.
func (s *site) key() (key []byte) {
	s.Helper()
	eventually(s.T, "the daemon publishes its key", func() error {
		if key = s.nodeImage().Status.CredentialsKey; len(key) == 0 {
			return errors.New("it has not")
		}
		return nil
	})
	return key
}

func TestCredentials(t *testing.T) {
	s := newSite(t, "private")
	s.serve()
	s.start()
	s.want(map[string]v1beta1.ImageSpec{
		"r.io/app": {Tags: []v1beta1.ImageTagSpec{s.sealed("r.io/app", tag("1"), "u"), tag("2")}},
		"o.io/app": {Tags: []v1beta1.ImageTagSpec{tag("1")}},
	})
	s.phases(map[string]v1beta1.ImagePullPhase{
		"r.io/app:1": v1beta1.ImagePhaseSucceeded, "r.io/app:2": v1beta1.ImagePhaseSucceeded, "o.io/app:1": v1beta1.ImagePhaseSucceeded,
	})
	if diff := cmp.Diff(map[string]string{"r.io/app:1": "u:p", "r.io/app:2": ":", "o.io/app:1": ":"}, s.openedBy()); diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
}

// TestCredentialsAfterARestart: the daemon has another key, and waits for credentials that are sealed for it, at no cost of attempts.
func TestCredentialsAfterARestart(t *testing.T) {
	s := newSite(t, "forgetful")
	s.serve()
	s.start()
	once := tag("1", func(t *v1beta1.ImageTagSpec) { t.PullPolicy.BackoffLimit = ptr.To[int32](0) })
	before := s.sealed("r.io/app", once, "u")
	s.daemon.Kill()
	s.want(map[string]v1beta1.ImageSpec{"r.io/app": {Tags: []v1beta1.ImageTagSpec{before}}})
	earlier := s.key()
	s.start()
	eventually(t, "it says what it waits for, and has another key", func() error {
		status := s.nodeImage().Status
		tags := status.ImageStatuses["r.io/app"].Tags
		if len(tags) != 1 || !strings.Contains(tags[0].Message, "waiting for the manager to seal") || bytes.Equal(status.CredentialsKey, earlier) {
			return fmt.Errorf("it says %+v, key %x", tags, status.CredentialsKey)
		}
		return nil
	})
	s.want(map[string]v1beta1.ImageSpec{"r.io/app": {Tags: []v1beta1.ImageTagSpec{s.sealed("r.io/app", once, "u")}}})
	s.phases(map[string]v1beta1.ImagePullPhase{"r.io/app:1": v1beta1.ImagePhaseSucceeded})
	s.expectOpenedBy("r.io/app:1", "u:p")
}
