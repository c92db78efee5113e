// Package sidecarset looks after SidecarSets: it brings new images to the sidecars of existing Pods, whoever owns those.
//
// It promises that images alone are changed, so that only the sidecar's own container restarts; that never more than maxUnavailable of all
// Pods that hold the sidecars are out of service because of it; and that as many Pods stay as they were as the partition says. Pods that
// would need more than an image are left alone and say so.
//
// A Pod's life with its sidecars:
//
//	created with them ──► an image changes ──► written, restarts ──► follows, ready ──► ...
//	                                                    └── hot: the new container takes over, then the old one goes idle
package sidecarset
