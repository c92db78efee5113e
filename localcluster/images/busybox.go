package images

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
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
