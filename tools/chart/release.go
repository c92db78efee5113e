package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/kustomize/api/types"
)

// release writes the charts as archives, and the manifests as one file each.
func (r request) release() error {
	if r.out == "" {
		return errors.New("-out is missing")
	}
	charts, err := r.charts()
	if err != nil {
		return err
	}
	for _, c := range charts {
		for i, v := range c.values {
			if repository, found := strings.CutSuffix(v.path, "image.repository"); found && v.standard != `""` {
				c.values[i] = text(repository+"image.repository", r.image(v.standard), v.what)
			}
		}
		files, err := c.files(r.version)
		if err != nil {
			return err
		}
		content, err := archive(c.name, files)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s-%s.tgz", c.name, strings.TrimPrefix(string(r.version), "v"))
		if err := os.WriteFile(filepath.Join(r.out, name), content, 0o644); err != nil { //nolint:gosec // for everybody to read
			return err
		}
	}
	if err := r.manifest("install.yaml", "default", "kruise-manager", "kruise-daemon"); err != nil {
		return err
	}
	return r.manifest("install-rollouts.yaml", "rollouts", "kruise-rollout")
}

// image returns the name of an image in the registry of the release.
func (r request) image(name string) string { return path.Join(r.registry, name) }

// manifest writes what kustomize makes of a folder of config into one file, with the images of the release.
func (r request) manifest(file, folder string, images ...string) error {
	var named []types.Image
	for _, name := range images {
		named = append(named, types.Image{Name: name, NewName: r.image(name), NewTag: string(r.version)})
	}
	all, err := buildWith(filepath.Join(r.root, "config", folder), nil, named)
	if err != nil {
		return err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# Kruise %s, from config/%s: kubectl apply --server-side -f %s\n", r.version, folder, file)
	for _, o := range all {
		text, err := encode(o.node)
		if err != nil {
			return err
		}
		out.WriteString("---\n" + text)
	}
	return os.WriteFile(filepath.Join(r.out, file), []byte(out.String()), 0o644) //nolint:gosec // for everybody to read
}

// archive returns a chart as Helm wants it. The same files give the same archive.
func archive(chart string, files map[string]string) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	names := slices.Sorted(maps.Keys(files))
	// Helm reads Chart.yaml first where it looks at the beginning of an archive only.
	slices.SortStableFunc(names, func(a, b string) int { return first(b) - first(a) })
	for _, name := range names {
		header := &tar.Header{
			Name: path.Join(chart, name), Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0),
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			return nil, err
		}
	}
	err := errors.Join(w.Close(), compressed.Close())
	return out.Bytes(), err
}

func first(name string) int {
	if name == "Chart.yaml" {
		return 1
	}
	return 0
}

// sums writes the checksum of each file of a folder, as sha256sum --check reads them.
func sums(dir string) error {
	const name = "SHA256SUMS"
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, entry := range entries {
		if entry.Name() == name {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(out.String()), 0o644) //nolint:gosec // for everybody to read
}
