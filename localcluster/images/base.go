package images

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// DefaultBusybox is where Debian's package busybox-static puts its program.
const DefaultBusybox = "/bin/busybox"

// CheckBusybox tells whether the program at path can be the base of the stand-in images: it must be there, and need no
// library that an image would lack.
func CheckBusybox(path string) error {
	program, err := elf.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no busybox at %s for the stand-in images: apt-get install -y busybox-static", path)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	defer program.Close()
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP {
			return fmt.Errorf("%s needs shared libraries, which the stand-in images lack: apt-get install -y busybox-static", path)
		}
	}
	return nil
}

// baseLayer is a small system: busybox under every name it answers to, and the folders and users that programs expect.
func baseLayer(busybox string) (v1.Layer, error) {
	if err := CheckBusybox(busybox); err != nil {
		return nil, err
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, fmt.Errorf("reading busybox: %w", err)
	}
	list, err := exec.Command(busybox, "--list-full").Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s for its names: %w", busybox, err)
	}
	entries := []entry{
		folder("bin", 0o755), folder("sbin", 0o755), folder("usr", 0o755), folder("usr/bin", 0o755), folder("usr/sbin", 0o755),
		folder("etc", 0o755), folder("home", 0o755), folder("root", 0o700), folder("run", 0o755), folder("srv", 0o755),
		folder("tmp", 0o1777), folder("var", 0o755), folder("var/run", 0o755), folder("var/tmp", 0o1777),
		{path: "etc/passwd", mode: 0o644, content: []byte(passwd)},
		{path: "etc/group", mode: 0o644, content: []byte(group)},
		{path: "bin/busybox", mode: 0o755, content: program},
	}
	for _, path := range strings.Fields(string(list)) {
		if path != "bin/busybox" {
			entries = append(entries, entry{path: path, mode: 0o777, link: "/bin/busybox"})
		}
	}
	return layerOf(entries)
}

const (
	passwd = `root:x:0:0:root:/root:/bin/sh
nginx:x:101:101:nginx:/nonexistent:/bin/false
nobody:x:65534:65534:nobody:/nonexistent:/bin/false
`
	group = `root:x:0:
nginx:x:101:
nogroup:x:65534:
`
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
