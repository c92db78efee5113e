package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	configv1 "k8s.io/kubelet/config/v1"
	providerv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/internal/node/keyring"
)

// The kind and the versions that a configuration may have: those are the same for all of its providers.
const (
	configKind    = "CredentialProviderConfig"
	configVersion = "kubelet.config.k8s.io/v1"
)

// Config says where the programs and their configuration are.
type Config struct {
	// File is the configuration, a CredentialProviderConfig of kubelet.config.k8s.io/v1. If there is no such file, there are no programs.
	File string
	// Folder holds the programs, by the names of the providers.
	Folder string
	Now    func() time.Time
}

// Load reads the configuration, and returns its programs. The error says what is wrong in it.
func Load(c Config) (*Programs, error) {
	out := &Programs{now: c.Now, answers: map[question]answer{}, asking: map[string]chan struct{}{}}
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
		p, err := newProgram(&config.Providers[i], c.Folder)
		if slices.ContainsFunc(out.programs, func(o program) bool { return o.name == p.name }) {
			err = errors.Join(err, fmt.Errorf("provider %q is there twice", p.name))
		}
		problems = append(problems, err)
		out.programs = append(out.programs, p)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("reading %s: %w", c.File, err)
	}
	return out, nil
}

// newProgram reads one provider of the configuration.
func newProgram(c *configv1.CredentialProvider, folder string) (program, error) {
	p := program{name: c.Name, path: filepath.Join(folder, c.Name), args: c.Args}
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
		p.lasts = c.DefaultCacheDuration.Duration
	}
	if len(c.MatchImages) == 0 {
		complain("matchImages is missing")
	}
	for _, text := range c.MatchImages {
		pattern, err := keyring.ParsePattern(text)
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
