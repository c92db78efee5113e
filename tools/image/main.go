// Command image puts an image together from a static binary, without a Docker engine, and writes it as a tarball that registries,
// containerd and docker load can take. The same binary gives the same image.
//
// Beside OUT.tar it writes OUT.spdx.json, the modules that the binary is made of (SPDX 2.3), and OUT.provenance.json, from which commit and
// with which compiler it was built (an in-toto statement with SLSA provenance). Both come from what the compiler records in the binary. The
// statement is not signed: whoever publishes the image signs it, for example with cosign attest --type slsaprovenance1.
package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// nobody is a user without any rights; the image has no other.
const nobody = "65534:65534"

// request is what is asked for.
type request struct {
	binary, entry, tag, arch, out string
}

func main() {
	var r request
	flag.StringVar(&r.binary, "binary", "", "static binary to put in")
	flag.StringVar(&r.entry, "entry", "/manager", "where it is in the image")
	flag.StringVar(&r.tag, "tag", "", "name of the image, such as kruise-manager:v0.1.0")
	flag.StringVar(&r.arch, "arch", "amd64", "architecture of the binary")
	flag.StringVar(&r.out, "out", "", "tarball to write, with .tar at its end")
	flag.Parse()
	if err := run(r); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(r request) error {
	info, err := buildinfo.ReadFile(r.binary)
	if err != nil {
		return fmt.Errorf("reading what %s is made of: %w", r.binary, err)
	}
	image, err := r.build()
	if err != nil {
		return err
	}
	reference, err := name.NewTag(r.tag)
	if err != nil {
		return fmt.Errorf("reading the name %q: %w", r.tag, err)
	}
	if err := tarball.WriteToFile(r.out, reference, image); err != nil {
		return fmt.Errorf("writing %s: %w", r.out, err)
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	fmt.Println(r.out, digest)
	b := built{image: reference, digest: digest, arch: r.arch, info: info}
	base := strings.TrimSuffix(r.out, ".tar")
	if err := write(base+".spdx.json", b.materials); err != nil {
		return err
	}
	return write(base+".provenance.json", b.provenance)
}

// write makes a document and stores it.
func write(path string, encode func() ([]byte, error)) error {
	document, err := encode()
	if err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	return os.WriteFile(path, append(document, '\n'), 0o644) //nolint:gosec // for everybody to read
}

// build makes the image: one layer with the binary, and a user without rights.
func (r request) build() (v1.Image, error) {
	content, err := os.ReadFile(r.binary)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		header := &tar.Header{Name: r.entry, Mode: 0o555, Size: int64(len(content)), Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
		return io.NopCloser(&archive), w.Close()
	})
	if err != nil {
		return nil, fmt.Errorf("making the layer: %w", err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", r.arch
	config.Config = v1.Config{Entrypoint: []string{r.entry}, User: nobody, WorkingDir: "/"}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return image, nil
}
