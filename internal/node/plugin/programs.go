package plugin

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
	"github.com/seed-69ecc383/kruise/internal/node/keyring"
)

// Programs are those of the configuration, in its order.
type Programs struct {
	programs []program
	now      func() time.Time

	mu      sync.Mutex
	answers map[question]answer
	// asking holds for each program that is being asked what is closed when it has answered.
	asking map[string]chan struct{}
}

// question is what an answer is kept for: a program, and an image, a registry or everything, as the program says.
type question struct {
	program string
	kind    providerv1.PluginCacheKeyType
	about   string
}

// answer is what a program has said.
type answer struct {
	patterns    []keyring.Pattern
	credentials []cri.Credentials
	until       time.Time
}

// Credentials returns those that may open a repository, in the order of the programs, of each the most specific first. A program that can't be
// asked is left out and told in the error, which says nothing against the rest.
func (p *Programs) Credentials(ctx context.Context, repository string) ([]cri.Credentials, error) {
	if len(p.programs) == 0 {
		return nil, nil
	}
	named, err := reference.ParseNormalizedNamed(repository)
	if err != nil {
		return nil, fmt.Errorf("reading image name %q: %w", repository, err)
	}
	var out []cri.Credentials
	var problems []error
	for i := range p.programs {
		program := &p.programs[i]
		if !slices.ContainsFunc(program.images, func(pattern keyring.Pattern) bool { return pattern.Matches(named) }) {
			continue
		}
		said, err := p.ask(ctx, program, named)
		if err != nil {
			problems = append(problems, fmt.Errorf("asking credential provider plugin %s: %w", program.name, err))
			continue
		}
		for j := range said.patterns {
			if said.patterns[j].Matches(named) {
				out = append(out, said.credentials[j])
			}
		}
	}
	return out, errors.Join(problems...)
}

// ask returns what a program says of an image, or has said and is still kept. It is not asked twice at the same time: what it says to one may be
// for the other, too.
func (p *Programs) ask(ctx context.Context, program *program, image reference.Named) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience(ctx))
	defer cancel()
	for {
		p.mu.Lock()
		if kept, ok := p.kept(program.name, image); ok {
			p.mu.Unlock()
			return kept, nil
		}
		other := p.asking[program.name]
		if other == nil {
			break
		}
		p.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return answer{}, errors.New("it is busy with another image")
		}
	}
	done := make(chan struct{})
	p.asking[program.name] = done
	p.mu.Unlock()
	said, keep, err := program.run(ctx, image)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.asking, program.name)
	close(done)
	if err != nil {
		return answer{}, err
	}
	if keep.lasts > 0 {
		said.until = p.now().Add(keep.lasts)
		p.answers[question{program.name, keep.kind, about(keep.kind, image)}] = said
	}
	return said, nil
}

// longest is the most time that a program has, which is what kubelets give it.
const longest = time.Minute

// patience returns how long a program may take: not so long that what it does not know can't be tried in other ways.
func patience(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(longest, time.Until(deadline)/2)
	}
	return longest
}

// kept returns what a program has said that is still good for an image, and forgets what is not good any more. The caller has the lock.
func (p *Programs) kept(program string, image reference.Named) (answer, bool) {
	now := p.now()
	maps.DeleteFunc(p.answers, func(_ question, a answer) bool { return !now.Before(a.until) })
	for _, kind := range []providerv1.PluginCacheKeyType{
		providerv1.ImagePluginCacheKeyType, providerv1.RegistryPluginCacheKeyType, providerv1.GlobalPluginCacheKeyType,
	} {
		if a, ok := p.answers[question{program, kind, about(kind, image)}]; ok {
			return a, true
		}
	}
	return answer{}, false
}

func about(kind providerv1.PluginCacheKeyType, image reference.Named) string {
	switch kind {
	case providerv1.ImagePluginCacheKeyType:
		return image.Name()
	case providerv1.RegistryPluginCacheKeyType:
		return reference.Domain(image)
	default:
		return ""
	}
}
