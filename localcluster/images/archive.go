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

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
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
