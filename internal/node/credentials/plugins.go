// Package credentials asks credential provider plugins for the credentials of a registry, by the protocol of kubelets: a request in JSON on
// the standard input, the answer in JSON on the standard output. So one configuration of plugins serves the kubelet and Kruise.
//
// Its promise: a plugin runs only when no cached answer is valid, and once at a time; and one that hangs, fails or answers nonsense takes
// no more than half of the time that is left, and keeps no other credentials from being tried. Plugins that need a token of the Pod's
// account can't be used, because there is no Pod yet.
package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/distribution/reference"
	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kubelet/config/v1"
	providerv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/internal/rules/registry"
)

// Plugins are the credential provider plugins of the configuration, in its order.
type Plugins struct {
	plugins []plugin
	now     func() time.Time

	mu    sync.Mutex
	cache map[cacheKey]answer
}

// cacheKey is what an answer is cached for: a plugin, and an image, a registry or everything, as the plugin says.
type cacheKey struct {
	plugin  string
	kind    providerv1.PluginCacheKeyType
	subject string
}

// answer is the answer of a plugin, and how long it is cached for what.
type answer struct {
	keyring  registry.Keyring
	kind     providerv1.PluginCacheKeyType
	duration time.Duration
	until    time.Time
}

// For returns the credentials for a repository, in the order of the plugins, of each the most specific first. A plugin that fails is left
// out, and named in the error.
func (p *Plugins) For(ctx context.Context, named reference.Named) ([]registry.Credentials, error) {
	var out []registry.Credentials
	var problems []error
	for i := range p.plugins {
		plugin := &p.plugins[i]
		if !slices.ContainsFunc(plugin.images, func(pattern registry.Pattern) bool { return pattern.Matches(named) }) {
			continue
		}
		found, err := p.ask(ctx, plugin, named)
		if err != nil {
			problems = append(problems, fmt.Errorf("asking credential provider plugin %s: %w", plugin.name, err))
			continue
		}
		out = append(out, found.keyring.For(named)...)
	}
	return out, errors.Join(problems...)
}

// ask returns the answer of a plugin for an image, or one that is still cached. A plugin runs once at a time, because its answer to one
// pull may be for others, too.
func (p *Plugins) ask(ctx context.Context, plugin *plugin, image reference.Named) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout(ctx))
	defer cancel()
	if cached, ok := p.cached(plugin.name, image); ok {
		return cached, nil
	}
	if plugin.slot.Acquire(ctx, 1) != nil {
		return answer{}, errors.New("it is busy with another image")
	}
	defer plugin.slot.Release(1)
	if cached, ok := p.cached(plugin.name, image); ok {
		return cached, nil
	}
	found, err := plugin.run(ctx, image)
	if err == nil && found.duration > 0 {
		found.until = p.now().Add(found.duration)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cache[cacheKey{plugin.name, found.kind, subject(found.kind, image)}] = found
	}
	return found, err
}

// maxTimeout is that of the kubelet.
const maxTimeout = time.Minute

// timeout returns how long a plugin may run: half of the time that is left at most, so that the other credentials can be tried.
func timeout(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(maxTimeout, time.Until(deadline)/2)
	}
	return maxTimeout
}

// cached returns an answer for an image that has not expired, and removes those that have.
func (p *Plugins) cached(plugin string, image reference.Named) (answer, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	maps.DeleteFunc(p.cache, func(_ cacheKey, a answer) bool { return !now.Before(a.until) })
	for _, kind := range []providerv1.PluginCacheKeyType{
		providerv1.ImagePluginCacheKeyType, providerv1.RegistryPluginCacheKeyType, providerv1.GlobalPluginCacheKeyType,
	} {
		if a, ok := p.cache[cacheKey{plugin, kind, subject(kind, image)}]; ok {
			return a, true
		}
	}
	return answer{}, false
}

func subject(kind providerv1.PluginCacheKeyType, image reference.Named) string {
	switch kind {
	case providerv1.ImagePluginCacheKeyType:
		return image.Name()
	case providerv1.RegistryPluginCacheKeyType:
		return reference.Domain(image)
	default:
		return ""
	}
}

// The kind and the versions that a configuration may have: those are the same for all of its providers.
const (
	configKind    = "CredentialProviderConfig"
	configVersion = "kubelet.config.k8s.io/v1"
)

// PluginConfig says where the plugins and their configuration are.
type PluginConfig struct {
	// File is the configuration, a CredentialProviderConfig of kubelet.config.k8s.io/v1. If there is no such file, there are no plugins.
	File string
	// Folder holds the programs, by the names of the plugins.
	Folder string
	Now    func() time.Time
}

// LoadPlugins reads the configuration. The error says what is wrong in it.
func LoadPlugins(c PluginConfig) (*Plugins, error) {
	out := &Plugins{now: c.Now, cache: map[cacheKey]answer{}}
	text, err := os.ReadFile(c.File)
	if c.File == "" || errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading credential provider plugins: %w", err)
	}
	var config configv1.CredentialProviderConfig
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		return nil, fmt.Errorf("reading %s: %w", c.File, err)
	}
	if config.Kind != configKind || config.APIVersion != configVersion {
		return nil, fmt.Errorf("reading %s: it is a %s of %s, want a %s of %s",
			c.File, config.Kind, config.APIVersion, configKind, configVersion)
	}
	var problems []error
	for i := range config.Providers {
		p, err := newPlugin(&config.Providers[i], c.Folder)
		if slices.ContainsFunc(out.plugins, func(o plugin) bool { return o.name == p.name }) {
			err = errors.Join(err, fmt.Errorf("provider %q is there twice", p.name))
		}
		problems = append(problems, err)
		out.plugins = append(out.plugins, p)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("reading %s: %w", c.File, err)
	}
	return out, nil
}

// newPlugin reads one provider of the configuration.
func newPlugin(c *configv1.CredentialProvider, folder string) (plugin, error) {
	p := plugin{name: c.Name, path: filepath.Join(folder, c.Name), args: c.Args, slot: semaphore.NewWeighted(1)}
	var problems []error
	complain := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("provider %q: "+format, append([]any{c.Name}, args...)...))
	}
	if c.Name == "" || c.Name != filepath.Base(c.Name) || c.Name == "." || c.Name == ".." {
		complain("the name is not that of a file in the folder of plugins")
	}
	if c.APIVersion != providerv1.SchemeGroupVersion.String() {
		complain("apiVersion is %q, want %s", c.APIVersion, providerv1.SchemeGroupVersion)
	}
	if c.TokenAttributes != nil {
		complain("tokenAttributes can't be had: images are pulled before there are Pods")
	}
	switch {
	case c.DefaultCacheDuration == nil:
		complain("defaultCacheDuration is missing")
	case c.DefaultCacheDuration.Duration < 0:
		complain("defaultCacheDuration is %s, want 0 or more", c.DefaultCacheDuration.Duration)
	default:
		p.cacheDuration = c.DefaultCacheDuration.Duration
	}
	if len(c.MatchImages) == 0 {
		complain("matchImages is missing")
	}
	for _, text := range c.MatchImages {
		pattern, err := registry.ParsePattern(text)
		if err != nil {
			complain("%w", err)
		}
		p.images = append(p.images, pattern)
	}
	for _, e := range c.Env {
		p.env = append(p.env, e.Name+"="+e.Value)
	}
	return p, errors.Join(problems...)
}

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
	images     []registry.Pattern
	// cacheDuration is how long an answer is cached that does not say.
	cacheDuration time.Duration
	// slot lets the plugin run once at a time.
	slot *semaphore.Weighted
}

// run asks the plugin for the credentials of an image.
func (p *plugin) run(ctx context.Context, image reference.Named) (answer, error) {
	request, err := json.Marshal(providerv1.CredentialProviderRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: providerv1.SchemeGroupVersion.String(), Kind: "CredentialProviderRequest"},
		Image:    image.Name(),
	})
	if err != nil {
		return answer{}, err
	}
	stdout, stderr := &limited{max: maxAnswer}, &limited{max: maxLogged}
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), stdout, stderr
	cmd.WaitDelay = outputDelay
	killGroup(cmd)
	switch err := cmd.Run(); {
	case err != nil && ctx.Err() != nil:
		return answer{}, errors.New("it did not answer in time")
	case err != nil:
		// Its standard error is only in the log of the node: it may hold secrets, and the error is shown to all who may read the job.
		log.FromContext(ctx).Info("A credential provider plugin failed",
			"plugin", p.name, "problem", err.Error(), "complaint", strings.TrimSpace(stderr.kept.String()))
		return answer{}, err
	case stdout.over:
		return answer{}, fmt.Errorf("its answer is longer than %d bytes", maxAnswer)
	}
	return p.parse(stdout.kept.Bytes())
}

// parse parses an answer. It is secret, so that an error must not quote it.
func (p *plugin) parse(text []byte) (answer, error) {
	var response providerv1.CredentialProviderResponse
	if err := json.Unmarshal(text, &response); err != nil {
		return answer{}, errors.New("its answer is not JSON of a CredentialProviderResponse")
	}
	if response.APIVersion != providerv1.SchemeGroupVersion.String() || response.Kind != "CredentialProviderResponse" {
		return answer{}, fmt.Errorf("its answer is a %s of %s, want a CredentialProviderResponse of %s",
			response.Kind, response.APIVersion, providerv1.SchemeGroupVersion)
	}
	out := answer{kind: response.CacheKeyType, duration: p.cacheDuration}
	switch out.kind {
	case providerv1.ImagePluginCacheKeyType, providerv1.RegistryPluginCacheKeyType, providerv1.GlobalPluginCacheKeyType:
	default:
		return answer{}, fmt.Errorf("its answer has cacheKeyType %q, want Image, Registry or Global", out.kind)
	}
	if response.CacheDuration != nil {
		out.duration = response.CacheDuration.Duration
	}
	// Backwards, so that longer patterns come before their beginnings, and names before wildcards.
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(response.Auth))) {
		pattern, err := registry.ParsePattern(key)
		if err != nil {
			return answer{}, fmt.Errorf("its answer: %w", err)
		}
		auth := response.Auth[key]
		credentials := registry.Credentials{Username: auth.Username, Password: auth.Password}
		out.keyring = append(out.keyring, registry.Entry{Pattern: pattern, Credentials: credentials})
	}
	return out, nil
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

// killGroup has a plugin killed with all processes that it has started: one that hangs runs again for the next pull, and must leave none
// behind.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
