package images

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// ErrUnknown says that there is no such image, manifest or blob.
var ErrUnknown = errors.New("unknown")

// Store is a folder of images: blobs by their digest, and for every name the manifest it stands for. Every file appears
// whole or not at all, so processes may write and read it at the same time, and nothing is lost when they end. Package
// layout of go-containerregistry promises neither that nor that a blob has its digest.
type Store string

// maxManifest is how large a manifest may be, in bytes; registries refuse larger ones.
const maxManifest = 4 << 20

// Add keeps an image, all its layers, and its name. A name that was known then stands for the new image.
func (s Store) Add(name reference.NamedTagged, image v1.Image) (v1.Descriptor, error) {
	descriptor, err := s.AddBlobs(image)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("keeping image %s: %w", name, err)
	}
	content, err := json.Marshal(descriptor)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("encoding what %s stands for: %w", name, err)
	}
	return descriptor, writeWhole(s.nameFile(name), bytes.NewReader(content))
}

// AddBlobs keeps an image that can be asked for by digest only.
func (s Store) AddBlobs(image v1.Image) (v1.Descriptor, error) {
	layers, err := image.Layers()
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("listing layers: %w", err)
	}
	config, err := partial.ConfigLayer(image)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("reading the configuration: %w", err)
	}
	for _, layer := range append(layers, config) {
		if err := s.addLayer(layer); err != nil {
			return v1.Descriptor{}, err
		}
	}
	// The manifest comes last: whoever finds it finds all that it names.
	manifest, err := image.RawManifest()
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("reading the manifest: %w", err)
	}
	descriptor := v1.Descriptor{Size: int64(len(manifest))}
	if descriptor.Digest, err = image.Digest(); err != nil {
		return v1.Descriptor{}, fmt.Errorf("reading the manifest: %w", err)
	}
	if descriptor.MediaType, err = image.MediaType(); err != nil {
		return v1.Descriptor{}, fmt.Errorf("reading the manifest: %w", err)
	}
	return descriptor, s.addBlob(descriptor.Digest, bytes.NewReader(manifest))
}

func (s Store) addLayer(layer v1.Layer) error {
	digest, err := layer.Digest()
	if err != nil {
		return fmt.Errorf("reading a layer: %w", err)
	}
	if s.has(digest) {
		return nil
	}
	content, err := layer.Compressed()
	if err != nil {
		return fmt.Errorf("reading layer %s: %w", digest, err)
	}
	defer content.Close()
	return s.addBlob(digest, content)
}

// addBlob keeps content under its digest, which is checked.
func (s Store) addBlob(digest v1.Hash, content io.Reader) error {
	if s.has(digest) {
		return nil
	}
	checked, err := verified(content, digest)
	if err != nil {
		return err
	}
	return writeWhole(s.blobFile(digest), checked)
}

func (s Store) has(digest v1.Hash) bool {
	_, err := os.Stat(s.blobFile(digest))
	return err == nil
}

// Resolve tells which manifest a name stands for, or ErrUnknown.
func (s Store) Resolve(name reference.NamedTagged) (v1.Descriptor, error) {
	content, err := os.ReadFile(s.nameFile(name))
	if errors.Is(err, os.ErrNotExist) {
		return v1.Descriptor{}, fmt.Errorf("finding image %s: %w", name, ErrUnknown)
	}
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("finding image %s: %w", name, err)
	}
	var descriptor v1.Descriptor
	if err := json.Unmarshal(content, &descriptor); err != nil {
		return v1.Descriptor{}, fmt.Errorf("reading what %s stands for: %w", name, err)
	}
	return descriptor, nil
}

// Manifest reads the manifest with a digest, or ErrUnknown if there is none or the blob is something else.
func (s Store) Manifest(digest v1.Hash) ([]byte, types.MediaType, error) {
	file, size, err := s.Blob(digest)
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	unknown := fmt.Errorf("reading manifest %s: %w", digest, ErrUnknown)
	if size > maxManifest {
		return nil, "", unknown
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, "", fmt.Errorf("reading manifest %s: %w", digest, err)
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(content))
	if err != nil || manifest.Config.Digest.Hex == "" {
		return nil, "", unknown
	}
	if manifest.MediaType == "" { // an OCI manifest need not name its own type
		return content, types.OCIManifestSchema1, nil
	}
	return content, manifest.MediaType, nil
}

// Blob opens the blob with a digest and tells its size in bytes. The caller closes it. The error is ErrUnknown if there
// is none.
func (s Store) Blob(digest v1.Hash) (*os.File, int64, error) {
	file, err := os.Open(s.blobFile(digest))
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, fmt.Errorf("finding blob %s: %w", digest, ErrUnknown)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("opening blob %s: %w", digest, err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("measuring blob %s: %w", digest, err), file.Close())
	}
	return file, info.Size(), nil
}

func (s Store) blobFile(digest v1.Hash) string {
	return filepath.Join(string(s), "blobs", digest.Algorithm, digest.Hex)
}

// nameFile lies in a folder for each part of the name. No part of a name starts with a colon, so tags meet nothing else.
func (s Store) nameFile(name reference.NamedTagged) string {
	return filepath.Join(string(s), "names", filepath.FromSlash(name.Name()), ":"+name.Tag())
}

// writeWhole makes a file appear with all its content in one step.
func writeWhole(path string, content io.Reader) (err error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	draft, err := os.CreateTemp(folder, ".new-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = io.Copy(draft, content)
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(draft.Name()))
	}
	return nil
}

// checkedReader fails at the end of a content that is not what its digest says.
type checkedReader struct {
	content io.Reader
	sum     hash.Hash
	want    v1.Hash
}

// verified checks content against its digest while it is read; only SHA-256 is known.
func verified(content io.Reader, want v1.Hash) (io.Reader, error) {
	if want.Algorithm != "sha256" {
		return nil, fmt.Errorf("checking %s: digests of kind %q are not supported", want, want.Algorithm)
	}
	return &checkedReader{content: content, sum: sha256.New(), want: want}, nil
}

func (r *checkedReader) Read(p []byte) (int, error) {
	n, err := r.content.Read(p)
	r.sum.Write(p[:n])
	if err == io.EOF {
		if got := hex.EncodeToString(r.sum.Sum(nil)); got != r.want.Hex {
			return n, fmt.Errorf("checking %s: the content has digest sha256:%s", r.want, got)
		}
	}
	return n, err
}
