package credentials

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
	configv1 "k8s.io/kubelet/config/v1"
	providerv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	"sigs.k8s.io/yaml"
)

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
		return nil, fmt.Errorf("reading %s: it is a %s of %s, want a %s of %s", c.File, config.Kind, config.APIVersion, configKind, configVersion)
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
		pattern, err := ParsePattern(text)
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
