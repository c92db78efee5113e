// Package pod holds facts about one Pod: whether it is active, ready, available, and since when. Every other rule and every controller
// asks here, so that "available" means the same everywhere.
//
// A Pod is available when it is running, ready for minReadySeconds, passes the readiness gate InPlaceUpdateReady, and its lifecycle state
// is Normal or absent.
package pod
