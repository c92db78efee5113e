package images

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Loaded is an image that a Store has under a name.
type Loaded struct {
	Name   reference.NamedTagged
	Digest v1.Hash
	// Replaced is true if the name stood for another image before. Nodes that have pulled that one go on using it in
	// Pods that do not always pull.
	Replaced bool
}

// Load keeps the images of a file: an archive as `docker save` writes it, or an OCI image layout as an archive or a
// folder; archives may be compressed with gzip. Names are those that the file gives, or the one that is asked for, if
// it is not "" and the file holds just one image. Of images for several platforms, the one for this machine is kept.
func (s Store) Load(path, asked string) ([]Loaded, error) {
	archive, err := openArchive(path)
	if err != nil {
		return nil, fmt.Errorf("reading images of %s: %w", path, err)
	}
	loaded, err := s.loadAll(archive.images, asked)
	if err = errors.Join(err, archive.close()); err != nil {
		return nil, fmt.Errorf("loading %s: %w", path, err)
	}
	return loaded, nil
}

func (s Store) loadAll(images []namedImage, asked string) ([]Loaded, error) {
	if len(images) == 0 {
		return nil, errors.New("it holds no image")
	}
	if asked != "" {
		if len(images) > 1 {
			return nil, fmt.Errorf("it holds %d images, which cannot all be named %s", len(images), asked)
		}
		images = []namedImage{{names: []string{asked}, image: images[0].image}}
	}
	var loaded []Loaded
	for _, image := range images {
		if len(image.names) == 0 {
			return nil, errors.New("it gives its image no name: say which with --name")
		}
		if err := runsHere(image.image); err != nil {
			return nil, err
		}
		for _, name := range image.names {
			one, err := s.loadAs(name, image.image)
			if err != nil {
				return nil, err
			}
			loaded = append(loaded, one)
		}
	}
	return loaded, nil
}

func (s Store) loadAs(name string, image v1.Image) (Loaded, error) {
	full, err := fullName(name)
	if err != nil {
		return Loaded{}, err
	}
	before, err := s.Resolve(full)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return Loaded{}, err
	}
	known := err == nil
	now, err := s.Add(full, image)
	if err != nil {
		return Loaded{}, err
	}
	return Loaded{Name: full, Digest: now.Digest, Replaced: known && before.Digest != now.Digest}, nil
}

// fullName is a name as nodes look it up: "web" is docker.io/library/web:latest.
func fullName(name string) (reference.NamedTagged, error) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return nil, fmt.Errorf("reading image name %q: %w", name, err)
	}
	if _, digested := named.(reference.Digested); digested {
		return nil, fmt.Errorf("reading image name %q: want a tag, not a digest", name)
	}
	return reference.TagNameOnly(named).(reference.NamedTagged), nil
}

// runsHere refuses images for other machines, which would fail much later and with less to say.
func runsHere(image v1.Image) error {
	config, err := image.ConfigFile()
	if err != nil {
		return fmt.Errorf("reading the image's configuration: %w", err)
	}
	if config.Architecture != "" && config.Architecture != runtime.GOARCH {
		return fmt.Errorf("the image is for %s, and the nodes of this machine are %s", config.Architecture, runtime.GOARCH)
	}
	return nil
}
