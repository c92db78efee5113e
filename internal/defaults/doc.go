// Package defaults fills in what users leave out.
//
// Wire: the hash of a defaulted template is part of the names of revisions, and of what Pods are compared by. The defaults of templates are
// therefore frozen: they are those that the template of a Deployment has always had. What Kubernetes adds later is left to the API server,
// which fills it in on the Pods themselves.
package defaults
