package pull

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/distribution/reference"

	rules "github.com/seed-69ecc383/kruise/internal/rules/pull"
	"github.com/seed-69ecc383/kruise/internal/rules/registry"
)

// errSealed is the error of a task whose credentials can't be opened: they were sealed for the key that the daemon had before it restarted,
// or it had published none yet. The manager seals them anew once it has seen the key.
var errSealed = errors.New("waiting for the manager to seal the credentials for this daemon")

// credentials returns those for the registry of a task's image: the sealed ones of its owners, and then those of the plugins. A plugin that
// fails is left out, and named in the error; the other credentials are valid all the same.
func (c Config) credentials(ctx context.Context, task Task) ([]registry.Credentials, error) {
	var out []registry.Credentials
	opened := len(task.Spec.Credentials) == 0
	for _, of := range task.Spec.Credentials {
		context := rules.SealContext(c.Node, rules.Reference{Repository: task.Repository, Tag: task.Tag}, of.Owner)
		text, err := c.Key.Open(of.Sealed, context)
		if err != nil {
			continue
		}
		var found []registry.Credentials
		if err := json.Unmarshal(text, &found); err != nil {
			return nil, errors.New("the sealed credentials can't be read: a newer manager may have written them") // err may quote them
		}
		opened = true
		out = append(out, found...)
	}
	if !opened {
		return nil, errSealed
	}
	image, err := reference.ParseNormalizedNamed(task.Repository)
	if err != nil {
		return out, fmt.Errorf("reading image name %q: %w", task.Repository, err)
	}
	more, failed := c.Plugins.For(ctx, image)
	return append(out, more...), failed
}
