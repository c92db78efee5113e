package credentials

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/distribution/reference"
	providerv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"github.com/seed-69ecc383/kruise/internal/node/cri"
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

// answer is the answer of a plugin.
type answer struct {
	patterns    []Pattern
	credentials []cri.Credentials
	until       time.Time
}

// For returns the credentials for a repository, in the order of the plugins, of each the most specific first. A plugin that fails is left
// out, and named in the error.
func (p *Plugins) For(ctx context.Context, named reference.Named) ([]cri.Credentials, error) {
	var out []cri.Credentials
	var problems []error
	for i := range p.plugins {
		plugin := &p.plugins[i]
		if !slices.ContainsFunc(plugin.images, func(pattern Pattern) bool { return pattern.Matches(named) }) {
			continue
		}
		found, err := p.ask(ctx, plugin, named)
		if err != nil {
			problems = append(problems, fmt.Errorf("asking credential provider plugin %s: %w", plugin.name, err))
			continue
		}
		for j := range found.patterns {
			if found.patterns[j].Matches(named) {
				out = append(out, found.credentials[j])
			}
		}
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
	found, keep, err := plugin.run(ctx, image)
	if err == nil && keep.duration > 0 {
		found.until = p.now().Add(keep.duration)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.cache[cacheKey{plugin.name, keep.kind, subject(keep.kind, image)}] = found
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
