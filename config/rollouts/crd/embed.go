// Package crd holds the CustomResourceDefinitions of Rollouts as they are shipped.
package crd

import "embed"

// Bases are their files.
//
//go:embed *.yaml
var Bases embed.FS
