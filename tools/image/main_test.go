package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdxlib"
)

// made makes an image of this test's own program and returns the path of the tarball.
func made(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "image.tar")
	if err := run(request{binary: self, entry: "/test", tag: "kruise-test:v1.2.3", arch: "amd64", out: out}); err != nil {
		t.Fatal(err)
	}
	return out
}

// beside reads the document of an image with that ending.
func beside(t *testing.T, out, ending string) []byte {
	t.Helper()
	content, err := os.ReadFile(out[:len(out)-len(".tar")] + ending)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func digestOf(t *testing.T, out string) string {
	t.Helper()
	image, err := tarball.ImageFromPath(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.Hex
}

func TestTheListOfMaterialsNamesEveryModuleOfTheBinary(t *testing.T) {
	out := made(t)
	document, err := spdxjson.Read(bytes.NewReader(beside(t, out, ".spdx.json")))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	packages := map[string]*spdx.Package{}
	for _, p := range document.Packages {
		packages[p.PackageName] = p
	}
	image := packages["library/kruise-test"]
	if image == nil || image.PackageVersion != "v1.2.3" || image.PackageChecksums[0].Value != digestOf(t, out) {
		t.Errorf("the image is %+v, want v1.2.3 with the digest of the tarball", image)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) == 0 {
		t.Fatal("the compiler recorded no modules")
	}
	for _, module := range info.Deps {
		p := packages[module.Path]
		if p == nil || p.PackageVersion != module.Version || len(p.PackageChecksums) != 1 ||
			p.PackageExternalReferences[0].Locator != "pkg:golang/"+module.Path+"@"+module.Version {
			t.Errorf("module %s %s is %+v", module.Path, module.Version, p)
		}
	}
	if packages["stdlib"] == nil {
		t.Error("the standard library is missing")
	}
}

func TestTheProvenanceIsOfTheImage(t *testing.T) {
	out := made(t)
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				ExternalParameters map[string]string
			}
			RunDetails struct {
				Builder struct{ Version map[string]string }
			}
		}
	}
	if err := json.Unmarshal(beside(t, out, ".provenance.json"), &statement); err != nil {
		t.Fatal(err)
	}
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("got a statement %s of %s", statement.Type, statement.PredicateType)
	}
	if len(statement.Subject) != 1 || statement.Subject[0].Name != "kruise-test:v1.2.3" || statement.Subject[0].Digest["sha256"] != digestOf(t, out) {
		t.Errorf("the subject is %+v, want the image of the tarball", statement.Subject)
	}
	if got := statement.Predicate.BuildDefinition.ExternalParameters["ARCH"]; got != "amd64" {
		t.Errorf("built for %q", got)
	}
	if statement.Predicate.RunDetails.Builder.Version["go"] == "" {
		t.Error("the compiler's version is missing")
	}
}

func TestTheSameBinaryGivesTheSameImageAndMaterials(t *testing.T) {
	one, other := made(t), made(t)
	if digestOf(t, one) != digestOf(t, other) {
		t.Error("two images of one binary differ")
	}
	if !bytes.Equal(beside(t, one, ".spdx.json"), beside(t, other, ".spdx.json")) {
		t.Error("two lists of materials of one binary differ")
	}
}
