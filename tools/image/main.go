// Command image puts an image together from a static binary, without a Docker engine, and writes it as a tarball that registries,
// containerd and docker load can take. The same binary gives the same image.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// nobody is a user without any rights; the image has no other.
const nobody = "65534:65534"

func main() {
	binary := flag.String("binary", "", "static binary to put in")
	entry := flag.String("entry", "/manager", "where it is in the image")
	tag := flag.String("tag", "kruise-manager:latest", "name of the image")
	arch := flag.String("arch", "amd64", "architecture of the binary")
	out := flag.String("out", "", "tarball to write")
	flag.Parse()
	if err := build(*binary, *entry, *tag, *arch, *out); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func build(binary, entry, tag, arch, out string) error {
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		header := &tar.Header{Name: entry, Mode: 0o555, Size: int64(len(content)), Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
		return io.NopCloser(&archive), w.Close()
	})
	if err != nil {
		return fmt.Errorf("making the layer: %w", err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return fmt.Errorf("adding the layer: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config = v1.Config{Entrypoint: []string{entry}, User: nobody, WorkingDir: "/"}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	reference, err := name.NewTag(tag)
	if err != nil {
		return fmt.Errorf("reading the name %q: %w", tag, err)
	}
	if err := tarball.WriteToFile(out, reference, image); err != nil {
		return fmt.Errorf("writing %s: %w", out, err)
	}
	digest, err := image.Digest()
	fmt.Println(out, digest)
	return err
}
