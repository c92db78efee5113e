// Package lint answers about manifests what an API server with Kruise would answer to their creation, without a cluster.
//
// It holds no rule of its own about Kruise's kinds. It reads the CustomResourceDefinitions that are shipped, has the API server's libraries
// judge by them, and then asks the handlers that serve the webhooks, in the order of the API server. Other objects are those of the
// manifests. What it adds are warnings of what no server refuses: keys that nobody reads, and references to objects that are not there.
package lint
