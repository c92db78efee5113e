package images

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// namedImage is an image of a file, with the names it has there.
type namedImage struct {
	names []string
	image v1.Image
}

// archive is an open file of images. They can be read until it is closed.
type archive struct {
	images []namedImage
	close  func() error
}

func openArchive(path string) (archive, error) {
	keep := func() error { return nil }
	info, err := os.Stat(path)
	if err != nil {
		return archive{}, err
	}
	if info.IsDir() {
		images, err := layoutImages(path)
		return archive{images, keep}, err
	}
	open := func() (io.ReadCloser, error) { return openTar(path) }
	files, err := filesOf(open)
	switch {
	case err != nil:
		return archive{}, err
	case files["manifest.json"]: // docker's form comes first: where a file has both, this one has whole names
		images, err := dockerImages(open)
		return archive{images, keep}, err
	case files["index.json"]:
		folder, err := unpackLayout(open)
		if err != nil {
			return archive{}, err
		}
		images, err := layoutImages(folder)
		if err != nil {
			return archive{}, errors.Join(err, os.RemoveAll(folder))
		}
		return archive{images, func() error { return os.RemoveAll(folder) }}, nil
	}
	return archive{}, errors.New("it is no archive of images: neither manifest.json nor index.json is in it")
}

// openTar opens a tar file, compressed or not.
func openTar(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReader(file)
	magic, err := buffered.Peek(2)
	if err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		content, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		return readCloser{content, file}, nil
	}
	return readCloser{buffered, file}, nil
}

// readCloser reads one thing and closes another.
type readCloser struct {
	io.Reader
	io.Closer
}

// eachFile calls visit for every plain file of an archive.
func eachFile(open tarball.Opener, visit func(name string, content io.Reader) error) error {
	file, err := open()
	if err != nil {
		return err
	}
	defer file.Close()
	reader := tar.NewReader(file)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading it as a tar archive: %w", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := visit(path.Clean(header.Name), reader); err != nil {
			return err
		}
	}
}

func filesOf(open tarball.Opener) (map[string]bool, error) {
	files := map[string]bool{}
	err := eachFile(open, func(name string, _ io.Reader) error {
		files[name] = true
		return nil
	})
	return files, err
}

// dockerImages are the images of an archive as `docker save` writes it.
func dockerImages(open tarball.Opener) ([]namedImage, error) {
	manifest, err := tarball.LoadManifest(open)
	if err != nil {
		return nil, fmt.Errorf("reading its manifest: %w", err)
	}
	var images []namedImage
	for _, descriptor := range manifest {
		var tag *name.Tag
		if len(manifest) > 1 && len(descriptor.RepoTags) > 0 { // an only image is found without its name
			first, err := name.NewTag(descriptor.RepoTags[0])
			if err != nil {
				return nil, fmt.Errorf("reading its manifest: %w", err)
			}
			tag = &first
		}
		image, err := tarball.Image(open, tag)
		if err != nil {
			return nil, fmt.Errorf("reading its image %v: %w", descriptor.RepoTags, err)
		}
		images = append(images, namedImage{names: descriptor.RepoTags, image: image})
	}
	return images, nil
}

// unpackLayout puts the files of an archived OCI layout into a new folder. Only names that a layout has are taken, so
// none leads out of the folder.
func unpackLayout(open tarball.Opener) (string, error) {
	folder, err := os.MkdirTemp("", "kruise-local-image-")
	if err != nil {
		return "", fmt.Errorf("unpacking: %w", err)
	}
	err = eachFile(open, func(name string, content io.Reader) error {
		isBlob, err := path.Match("blobs/sha256/*", name)
		if err != nil || !isBlob && name != "index.json" && name != "oci-layout" {
			return err
		}
		return writeWhole(filepath.Join(folder, filepath.FromSlash(name)), content)
	})
	if err != nil {
		return "", errors.Join(fmt.Errorf("unpacking: %w", err), os.RemoveAll(folder))
	}
	return folder, nil
}

// Annotations that name an image in the index of an OCI layout. The first is whole by convention of those who write it;
// the second, which the specification defines, often holds the tag only.
const (
	annotationWholeName = "io.containerd.image.name"
	annotationRefName   = "org.opencontainers.image.ref.name"
)

// layoutImages are the images of an OCI layout in a folder.
func layoutImages(folder string) ([]namedImage, error) {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, fmt.Errorf("reading its index: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading its index: %w", err)
	}
	var images []namedImage
	byDigest := map[v1.Hash]int{}
	for _, descriptor := range manifest.Manifests {
		image, err := imageFor(index, descriptor)
		if err != nil {
			return nil, err
		}
		at, known := byDigest[descriptor.Digest] // one image with two names is listed twice
		if !known {
			at = len(images)
			byDigest[descriptor.Digest] = at
			images = append(images, namedImage{image: image})
		}
		if name := nameIn(descriptor.Annotations); name != "" {
			images[at].names = append(images[at].names, name)
		}
	}
	return images, nil
}

// nameIn is the name that annotations give, or "". A bare tag is none.
func nameIn(annotations map[string]string) string {
	if name := annotations[annotationWholeName]; name != "" {
		return name
	}
	if name := annotations[annotationRefName]; strings.ContainsAny(name, ":/") {
		return name
	}
	return ""
}

// imageFor is the image that a descriptor of an index stands for: itself, or of several that for this machine.
func imageFor(index v1.ImageIndex, descriptor v1.Descriptor) (v1.Image, error) {
	if !descriptor.MediaType.IsIndex() {
		image, err := index.Image(descriptor.Digest)
		if err != nil {
			return nil, fmt.Errorf("reading its image %s: %w", descriptor.Digest, err)
		}
		return image, nil
	}
	inner, err := index.ImageIndex(descriptor.Digest)
	if err != nil {
		return nil, fmt.Errorf("reading its index %s: %w", descriptor.Digest, err)
	}
	manifest, err := inner.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading its index %s: %w", descriptor.Digest, err)
	}
	here := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	for _, candidate := range manifest.Manifests {
		if candidate.Platform != nil && candidate.Platform.Satisfies(here) {
			return imageFor(inner, candidate)
		}
	}
	return nil, fmt.Errorf("its image %s is for other platforms than %s", descriptor.Digest, here)
}
