package plugin

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	providerv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seed-69ecc383/kruise/internal/node/cri"
	"github.com/seed-69ecc383/kruise/internal/node/keyring"
)

const (
	// mostSaid is how much of what a program prints is read, in bytes, and mostComplained how much of its complaints is logged.
	mostSaid, mostComplained = 1 << 20, 512
	// lastWords is how long a program that was ended may hold on to its outputs, through others that it has started.
	lastWords = time.Second
)

// program is one provider of the configuration.
type program struct {
	name, path string
	args, env  []string
	images     []keyring.Pattern
	// lasts is for how long an answer is kept that does not say.
	lasts time.Duration
}

// keep is how long an answer is kept, and for what.
type keep struct {
	kind  providerv1.PluginCacheKeyType
	lasts time.Duration
}

// run asks the program for the credentials of an image.
func (p *program) run(ctx context.Context, image reference.Named) (answer, keep, error) {
	asked, err := json.Marshal(providerv1.CredentialProviderRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: providerv1.SchemeGroupVersion.String(), Kind: "CredentialProviderRequest"},
		Image:    image.Name(),
	})
	if err != nil {
		return answer{}, keep{}, err
	}
	said, complained := &limited{most: mostSaid}, &limited{most: mostComplained}
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(asked), said, complained
	cmd.WaitDelay = lastWords
	together(cmd)
	switch err := cmd.Run(); {
	case err != nil && ctx.Err() != nil:
		return answer{}, keep{}, errors.New("it did not answer in time")
	case err != nil:
		// What it complains of stays in the log of the node: it deals with secrets, and the error is told to all who may read the job.
		log.FromContext(ctx).Info("A credential provider plugin failed", "plugin", p.name, "problem", err.Error(), "complaint", strings.TrimSpace(complained.kept.String()))
		return answer{}, keep{}, err
	case said.over:
		return answer{}, keep{}, fmt.Errorf("its answer is longer than %d bytes", mostSaid)
	}
	return p.read(said.kept.Bytes())
}

// read reads an answer. What it holds is secret, so that an error must not quote it.
func (p *program) read(said []byte) (answer, keep, error) {
	var response providerv1.CredentialProviderResponse
	if err := json.Unmarshal(said, &response); err != nil {
		return answer{}, keep{}, errors.New("its answer is not JSON of a CredentialProviderResponse")
	}
	if response.APIVersion != providerv1.SchemeGroupVersion.String() || response.Kind != "CredentialProviderResponse" {
		return answer{}, keep{}, fmt.Errorf("its answer is a %s of %s, want a CredentialProviderResponse of %s", response.Kind, response.APIVersion, providerv1.SchemeGroupVersion)
	}
	kept := keep{kind: response.CacheKeyType, lasts: p.lasts}
	switch kept.kind {
	case providerv1.ImagePluginCacheKeyType, providerv1.RegistryPluginCacheKeyType, providerv1.GlobalPluginCacheKeyType:
	default:
		return answer{}, keep{}, fmt.Errorf("its answer has cacheKeyType %q, want Image, Registry or Global", kept.kind)
	}
	if response.CacheDuration != nil {
		kept.lasts = response.CacheDuration.Duration
	}
	var out answer
	// Backwards, so that longer patterns come before their beginnings, and names before wildcards.
	for _, text := range slices.Backward(slices.Sorted(maps.Keys(response.Auth))) {
		pattern, err := keyring.ParsePattern(text)
		if err != nil {
			return answer{}, keep{}, fmt.Errorf("its answer: %w", err)
		}
		auth := response.Auth[text]
		out.patterns = append(out.patterns, pattern)
		out.credentials = append(out.credentials, cri.Credentials{Username: auth.Username, Password: auth.Password})
	}
	return out, kept, nil
}

// limited keeps the beginning of what is written to it, and takes the rest without keeping it: a program must not wait for it to be read.
type limited struct {
	kept bytes.Buffer // not embedded: it would be written to around the limit
	most int
	over bool
}

func (l *limited) Write(text []byte) (int, error) {
	left := max(0, l.most-l.kept.Len())
	if len(text) > left {
		l.over = true
		l.kept.Write(text[:left])
		return len(text), nil
	}
	return l.kept.Write(text)
}
