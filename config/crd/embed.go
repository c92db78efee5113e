// Package crd holds the CustomResourceDefinitions of Kruise as they are shipped.
package crd

import "embed"

// Bases are their files.
//
//go:embed bases/*.yaml
var Bases embed.FS
