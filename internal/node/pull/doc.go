// Package pull brings the images that a NodeImage lists onto its node, before Pods need them.
//
// A round is one tag in one version; the manager asks for it in the spec, and the daemon answers in the status. A round is begun when the status
// tells of no end of it, and so it goes on after the daemon was killed; an image that is there by then is not pulled again. Limits count from the
// beginning that the status tells of. A container runtime that is away costs a round no attempt.
//
// Writes are few: one when a round has begun, unless it ends at once, one for each failed attempt, and one when it has ended; those of several
// rounds go together, and all of a node are limited to one in two seconds.
package pull
