package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	providerv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/internal/node/cri"
)

const (
	// maxAnswer is how much of the output of a plugin is read, in bytes, and maxLogged how much of its standard error is logged.
	maxAnswer, maxLogged = 1 << 20, 512
	// outputDelay is how long the processes that a plugin has started may keep its outputs open after its end.
	outputDelay = time.Second
)

// plugin is one provider of the configuration.
type plugin struct {
	name, path string
	args, env  []string
	images     []Pattern
	// cacheDuration is how long an answer is cached that does not say.
	cacheDuration time.Duration
	// slot lets the plugin run once at a time.
	slot *semaphore.Weighted
}

// keep is how long an answer is cached, and for what.
type keep struct {
	kind     providerv1.PluginCacheKeyType
	duration time.Duration
}

// run asks the plugin for the credentials of an image.
func (p *plugin) run(ctx context.Context, image reference.Named) (answer, keep, error) {
	request, err := json.Marshal(providerv1.CredentialProviderRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: providerv1.SchemeGroupVersion.String(), Kind: "CredentialProviderRequest"},
		Image:    image.Name(),
	})
	if err != nil {
		return answer{}, keep{}, err
	}
	stdout, stderr := &limited{max: maxAnswer}, &limited{max: maxLogged}
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), stdout, stderr
	cmd.WaitDelay = outputDelay
	killGroup(cmd)
	switch err := cmd.Run(); {
	case err != nil && ctx.Err() != nil:
		return answer{}, keep{}, errors.New("it did not answer in time")
	case err != nil:
		// Its standard error is only in the log of the node: it may hold secrets, and the error is shown to all who may read the job.
		log.FromContext(ctx).Info("A credential provider plugin failed", "plugin", p.name, "problem", err.Error(), "complaint", strings.TrimSpace(stderr.kept.String()))
		return answer{}, keep{}, err
	case stdout.over:
		return answer{}, keep{}, fmt.Errorf("its answer is longer than %d bytes", maxAnswer)
	}
	return p.parse(stdout.kept.Bytes())
}

// parse parses an answer. It is secret, so that an error must not quote it.
func (p *plugin) parse(text []byte) (answer, keep, error) {
	var response providerv1.CredentialProviderResponse
	if err := json.Unmarshal(text, &response); err != nil {
		return answer{}, keep{}, errors.New("its answer is not JSON of a CredentialProviderResponse")
	}
	if response.APIVersion != providerv1.SchemeGroupVersion.String() || response.Kind != "CredentialProviderResponse" {
		return answer{}, keep{}, fmt.Errorf("its answer is a %s of %s, want a CredentialProviderResponse of %s", response.Kind, response.APIVersion, providerv1.SchemeGroupVersion)
	}
	kept := keep{kind: response.CacheKeyType, duration: p.cacheDuration}
	switch kept.kind {
	case providerv1.ImagePluginCacheKeyType, providerv1.RegistryPluginCacheKeyType, providerv1.GlobalPluginCacheKeyType:
	default:
		return answer{}, keep{}, fmt.Errorf("its answer has cacheKeyType %q, want Image, Registry or Global", kept.kind)
	}
	if response.CacheDuration != nil {
		kept.duration = response.CacheDuration.Duration
	}
	var out answer
	// Backwards, so that longer patterns come before their beginnings, and names before wildcards.
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(response.Auth))) {
		pattern, err := ParsePattern(key)
		if err != nil {
			return answer{}, keep{}, fmt.Errorf("its answer: %w", err)
		}
		auth := response.Auth[key]
		out.patterns = append(out.patterns, pattern)
		out.credentials = append(out.credentials, cri.Credentials{Username: auth.Username, Password: auth.Password})
	}
	return out, kept, nil
}

// limited keeps the beginning of what is written to it, and discards the rest: a plugin must not block on its output.
type limited struct {
	kept bytes.Buffer // not embedded: it would be written to around the limit
	max  int
	over bool
}

func (l *limited) Write(text []byte) (int, error) {
	left := max(0, l.max-l.kept.Len())
	if len(text) > left {
		l.over = true
		l.kept.Write(text[:left])
		return len(text), nil
	}
	return l.kept.Write(text)
}
