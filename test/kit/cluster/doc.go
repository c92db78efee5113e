// Package cluster brings up a real control plane with kruise-local, installs Kruise into it and runs managers beside it, for tests, the
// demo and the benchmark.
package cluster
