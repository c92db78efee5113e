// Package keyring finds the credentials that open the registry of an image: in Secrets, which it reads by name when they are needed and never
// keeps.
//
// Entries of a Secret are matched as kubelets match them: by host, each of whose parts may have wildcards (*.example.com), by port, and by the
// beginning of the path. The most specific entry is tried first.
package keyring
