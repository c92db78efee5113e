package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"runtime/debug"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	provenancev1 "github.com/in-toto/attestation/go/predicates/provenance/v1"
	statementv1 "github.com/in-toto/attestation/go/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// dawn is when things without a time were made.
	dawn = "1970-01-01T00:00:00Z"
	// buildType says what the parameters of a build mean: its page describes `make image`.
	buildType = "https://github.com/seed-69ecc383/kruise/blob/main/SECURITY.md#images"
	builder   = "https://github.com/seed-69ecc383/kruise/blob/main/Makefile"
)

// built is an image and what the compiler recorded of its binary.
type built struct {
	image  name.Tag
	digest v1.Hash
	arch   string
	info   *debug.BuildInfo
}

// setting returns what the compiler recorded under a key, such as vcs.revision; "" if nothing.
func (b built) setting(key string) string {
	for _, setting := range b.info.Settings {
		if setting.Key == key {
			return setting.Value
		}
	}
	return ""
}

// commit is the commit that was built, and whether the work tree had changes beside it.
func (b built) commit() (revision string, modified bool) {
	return b.setting("vcs.revision"), b.setting("vcs.modified") == "true"
}

// materials is the list of all modules in the binary, as an SPDX 2.3 document. It depends on the image alone, so that the same image has
// the same list.
func (b built) materials() ([]byte, error) {
	made := b.setting("vcs.time")
	if made == "" {
		made = dawn
	}
	image := &spdx.Package{
		PackageName: b.image.RepositoryStr(), PackageSPDXIdentifier: "Image",
		PackageVersion: b.image.TagStr(), PrimaryPackagePurpose: "CONTAINER",
		PackageDownloadLocation: "NOASSERTION", PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: b.digest.Hex}},
		PackageExternalReferences: []*spdx.PackageExternalReference{purl("pkg:oci/" + path.Base(b.image.RepositoryStr()) + "@" +
			b.digest.String())},
	}
	document := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: b.image.Name(),
		DocumentNamespace: "https://" + b.info.Main.Path + "/spdx/" + path.Base(b.image.RepositoryStr()) + "/" + b.digest.Hex,
		CreationInfo:      &spdx.CreationInfo{Created: made, Creators: []common.Creator{{CreatorType: "Tool", Creator: "kruise-image"}}},
		Packages:          []*spdx.Package{image},
		Relationships:     []*spdx.Relationship{relation("DOCUMENT", "Image", common.TypeRelationshipDescribe)},
	}
	toolchain := &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(b.info.GoVersion, "go")}
	for i, module := range append([]*debug.Module{toolchain, &b.info.Main}, b.info.Deps...) {
		if module.Replace != nil {
			module = module.Replace
		}
		p, err := packageOf(module, fmt.Sprintf("Module-%d", i))
		if err != nil {
			return nil, err
		}
		document.Packages = append(document.Packages, p)
		document.Relationships = append(document.Relationships,
			relation("Image", p.PackageSPDXIdentifier, common.TypeRelationshipContains))
	}
	var out bytes.Buffer
	err := spdxjson.Write(document, &out, spdxjson.Indent("  "))
	return bytes.TrimSpace(out.Bytes()), err
}

// packageOf describes a module. The checksum of go.sum is that of the module's files.
func packageOf(module *debug.Module, id string) (*spdx.Package, error) {
	p := &spdx.Package{
		PackageName: module.Path, PackageSPDXIdentifier: common.ElementID(id),
		PackageVersion: module.Version, PackageDownloadLocation: "NOASSERTION",
		PackageExternalReferences: []*spdx.PackageExternalReference{purl("pkg:golang/" + module.Path + "@" + module.Version)},
	}
	if sum, ok := strings.CutPrefix(module.Sum, "h1:"); ok {
		raw, err := base64.StdEncoding.DecodeString(sum)
		if err != nil {
			return nil, fmt.Errorf("reading the checksum of %s: %w", module.Path, err)
		}
		p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: hex.EncodeToString(raw)}}
	}
	return p, nil
}

func purl(locator string) *spdx.PackageExternalReference {
	return &spdx.PackageExternalReference{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: locator}
}

func relation(from, to common.ElementID, kind string) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.DocElementID{ElementRefID: from}, RefB: common.DocElementID{ElementRefID: to},
		Relationship: kind}
}

// provenance says how the image was built, as an in-toto statement with SLSA provenance of version 1.
func (b built) provenance() ([]byte, error) {
	parameters, err := structpb.NewStruct(map[string]any{"target": "image", "ARCH": b.arch, "TAG": b.image.String()})
	if err != nil {
		return nil, err
	}
	definition := &provenancev1.BuildDefinition{BuildType: buildType, ExternalParameters: parameters}
	if revision, modified := b.commit(); revision != "" {
		source := &statementv1.ResourceDescriptor{
			Uri: "git+https://" + b.info.Main.Path, Digest: map[string]string{"gitCommit": revision},
		}
		if modified {
			source.Annotations, err = structpb.NewStruct(map[string]any{"modified": true})
			if err != nil {
				return nil, err
			}
		}
		definition.ResolvedDependencies = append(definition.ResolvedDependencies, source)
	}
	predicate := &provenancev1.Provenance{
		BuildDefinition: definition,
		RunDetails: &provenancev1.RunDetails{Builder: &provenancev1.Builder{Id: builder,
			Version: map[string]string{"go": b.info.GoVersion}}},
	}
	if err := predicate.Validate(); err != nil {
		return nil, err
	}
	encoded, err := protojson.Marshal(predicate)
	if err != nil {
		return nil, err
	}
	var fields structpb.Struct
	if err := protojson.Unmarshal(encoded, &fields); err != nil {
		return nil, err
	}
	statement := &statementv1.Statement{
		Type: statementv1.StatementTypeUri,
		Subject: []*statementv1.ResourceDescriptor{{Name: b.image.String(),
			Digest: map[string]string{b.digest.Algorithm: b.digest.Hex}}},
		PredicateType: "https://slsa.dev/provenance/v1",
		Predicate:     &fields,
	}
	if err := statement.Validate(); err != nil {
		return nil, err
	}
	if encoded, err = protojson.Marshal(statement); err != nil {
		return nil, err
	}
	// Its encoder varies the spaces from build to build, on purpose.
	var plain, out bytes.Buffer
	if err := json.Compact(&plain, encoded); err != nil {
		return nil, err
	}
	err = json.Indent(&out, plain.Bytes(), "", "  ")
	return out.Bytes(), err
}
