// Package compat holds what clusters store already against what Kruise would write today.
//
// testdata/revisions.json, clonesets.json and claims.json were recorded in a live cluster of OpenKruise. testdata/templates.json has
// templates, and the bytes and hashes that the types and the codec of Kubernetes 1.32 make of them.
package compat
