package images_test

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/seed-69ecc383/kruise/localcluster/images"
)

// otherArchitecture is one that this machine has not.
const otherArchitecture = "s390x"

// anImage is a new image for an architecture.
func anImage(t *testing.T, architecture string) v1.Image {
	t.Helper()
	image, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

func digest(t *testing.T, image v1.Image) string {
	t.Helper()
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// saved is an archive of images as docker writes it.
func saved(t *testing.T, byName map[string]v1.Image) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "saved.tar")
	tagged := map[name.Tag]v1.Image{}
	for written, image := range byName {
		tag, err := name.NewTag(written)
		if err != nil {
			t.Fatal(err)
		}
		tagged[tag] = image
	}
	if err := tarball.MultiWriteToFile(path, tagged); err != nil {
		t.Fatal(err)
	}
	return path
}

// layoutOf is a folder with an OCI layout of an index.
func layoutOf(t *testing.T, additions ...mutate.IndexAddendum) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "layout")
	if _, err := layout.Write(path, mutate.AppendManifests(empty.Index, additions...)); err != nil {
		t.Fatal(err)
	}
	return path
}

// annotated adds an image to an index with one annotation.
func annotated(add mutate.Appendable, key, value string) mutate.IndexAddendum {
	return mutate.IndexAddendum{Add: add, Descriptor: v1.Descriptor{Annotations: map[string]string{key: value}}}
}

// packed is a tar archive of a folder.
func packed(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "packed.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := tar.NewWriter(file)
	if err := w.AddFS(os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func compressed(t *testing.T, path string) string {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(path + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := gzip.NewWriter(out)
	if _, err := io.Copy(w, in); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Name()
}

func TestLoadedImagesCanBePulled(t *testing.T) {
	const wholeName, refName = "io.containerd.image.name", "org.opencontainers.image.ref.name"
	image := anImage(t, runtime.GOARCH)
	platforms := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: anImage(t, otherArchitecture), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: otherArchitecture}}},
		mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}})
	tests := map[string]struct {
		path  string
		asked string
		want  []string // full names
	}{
		"an archive of docker's": {
			path: saved(t, map[string]v1.Image{"web:v1": image}),
			want: []string{"docker.io/library/web:v1"},
		},
		"an archive with two names": {
			path: saved(t, map[string]v1.Image{"web:v1": image, "example.com/team/web:v1": image}),
			want: []string{"docker.io/library/web:v1", "example.com/team/web:v1"},
		},
		"a compressed archive": {
			path: compressed(t, saved(t, map[string]v1.Image{"web": image})),
			want: []string{"docker.io/library/web:latest"},
		},
		"an archive under another name": {
			path: saved(t, map[string]v1.Image{"web:v1": image}), asked: "quay.io/me/other:v2",
			want: []string{"quay.io/me/other:v2"},
		},
		"a layout with a whole name": {
			path: layoutOf(t, annotated(image, wholeName, "docker.io/library/web:v1")),
			want: []string{"docker.io/library/web:v1"},
		},
		"a layout with a whole name in the other place": {
			path: layoutOf(t, annotated(image, refName, "example.com/web:v1")),
			want: []string{"example.com/web:v1"},
		},
		"an archived layout that tells only a tag": {
			path: packed(t, layoutOf(t, annotated(image, refName, "v1"))), asked: "web",
			want: []string{"docker.io/library/web:latest"},
		},
		"an image for several platforms": {
			path: packed(t, layoutOf(t, annotated(platforms, wholeName, "web:v1"))),
			want: []string{"docker.io/library/web:v1"},
		},
		"a name that a stand-in has": {
			path: saved(t, map[string]v1.Image{"nginx:1.27": image}),
			want: []string{"docker.io/library/nginx:1.27"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			store := images.Store(t.TempDir())
			loaded, err := store.Load(tc.path, tc.asked)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, one := range loaded {
				got[one.Name.String()] = true
			}
			want := map[string]bool{}
			for _, full := range tc.want {
				want[full] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("names differ (-want +got):\n%s", diff)
			}
			// A registry that starts later knows what was loaded before.
			address := startRegistry(t, store)
			for full := range want {
				checkPull(t, address, full, image)
			}
		})
	}
}

// checkPull pulls an image by its full name and compares its content.
func checkPull(t *testing.T, address, full string, want v1.Image) {
	t.Helper()
	registry, path, _ := strings.Cut(full, "/")
	pulled, err := pull(address, registry, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(pulled); err != nil {
		t.Errorf("the image is not sound: %v", err)
	}
	wantID, err := want.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	gotID, err := pulled.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if gotID != wantID {
		t.Errorf("%s has image ID %s, want %s", full, gotID, wantID)
	}
}

func TestLoadingANameAgainReplacesIt(t *testing.T) {
	store := images.Store(t.TempDir())
	first, second := anImage(t, runtime.GOARCH), anImage(t, runtime.GOARCH)
	for _, step := range []struct {
		image    v1.Image
		replaces bool
	}{{first, false}, {first, false}, {second, true}} {
		loaded, err := store.Load(saved(t, map[string]v1.Image{"web:v1": step.image}), "")
		if err != nil {
			t.Fatal(err)
		}
		if len(loaded) != 1 || loaded[0].Replaced != step.replaces {
			t.Errorf("got %+v, want one image that replaces another: %t", loaded, step.replaces)
		}
	}
	checkPull(t, startRegistry(t, store), "docker.io/library/web:v1", second)
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	image := anImage(t, runtime.GOARCH)
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	tests := map[string]struct{ path, asked, want string }{
		"no file":                  {path: filepath.Join(folder, "none.tar"), want: "no such file"},
		"no archive":               {path: text, want: "as a tar archive"},
		"an archive of files":      {path: packed(t, filepath.Dir(text)), want: "no archive of images"},
		"a folder of files":        {path: folder, want: "index.json"},
		"a layout of nothing":      {path: layoutOf(t), want: "holds no image"},
		"an image without a name":  {path: layoutOf(t, mutate.IndexAddendum{Add: image}), want: "--name"},
		"an impossible name":       {path: saved(t, map[string]v1.Image{"web:v1": image}), asked: "Web", want: "must be lowercase"},
		"a digest in place of tag": {path: saved(t, map[string]v1.Image{"web:v1": image}), asked: "web@" + digest(t, image), want: "not a digest"},
		"one name for two images": {
			path:  saved(t, map[string]v1.Image{"web:v1": image, "api:v1": anImage(t, runtime.GOARCH)}),
			asked: "web", want: "2 images",
		},
		"an image for other machines": {
			path: saved(t, map[string]v1.Image{"web:v1": anImage(t, otherArchitecture)}), want: "for " + otherArchitecture,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			store := images.Store(t.TempDir())
			_, err := store.Load(tc.path, tc.asked)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got error %v, want one that says %q", err, tc.want)
			}
			if !strings.Contains(err.Error(), tc.path) {
				t.Errorf("got error %v, want one that names the file", err)
			}
		})
	}
}
