package images

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// entry is a file, a folder or a symbolic link of a layer.
type entry struct {
	path    string
	mode    int64
	content []byte
	link    string // where a symbolic link leads
	folder  bool
}

func folder(path string, mode int64) entry { return entry{path: path, mode: mode, folder: true} }

// layerOf puts a layer together. The same entries give the same bytes, on any day and machine.
func layerOf(entries []entry) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, e := range entries {
		header := &tar.Header{Name: e.path, Mode: e.mode, Size: int64(len(e.content)), Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0)}
		switch {
		case e.folder:
			header.Typeflag, header.Name = tar.TypeDir, e.path+"/"
		case e.link != "":
			header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("adding %s to a layer: %w", e.path, err)
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, fmt.Errorf("adding %s to a layer: %w", e.path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("finishing a layer: %w", err)
	}
	content := archive.Bytes()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("compressing a layer: %w", err)
	}
	return layer, nil
}
