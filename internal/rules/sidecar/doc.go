// Package sidecar holds what injection and update of sidecars have in common, and the rules of the update: what a SidecarSet's hash and
// revisions are made of, which Pods it selects, what is noted on a Pod, and what the next step of an update in place is.
//
// An update changes images alone; a Pod whose sidecars differ in more stays as it is until it is created anew. Never more than
// maxUnavailable Pods of the whole set are out of service because of it, whoever owns them. The images are judged by package inplace, the
// revisions are named by package revision.
package sidecar
