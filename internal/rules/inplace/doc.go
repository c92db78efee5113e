// Package inplace changes a running Pod to another revision without recreating it: which changes can go that way, how they are carried out
// step by step, and when they are done. It reads revisions by package revision.
//
// Images can change, labels and annotations, environment variables that come from those, and, where allowed, CPU and memory. The steps of
// one update, each of which leaves on the Pod all that the next one needs, so that it can go on after a crash at any point:
//
//	Begin     out of service (InPlaceUpdateReady False), the whole plan in an annotation, the labels of the new revision
//	Advance   after the grace period the first batch of containers; each further batch once the one before runs and is ready
//	Progress  whether the containers run what they should
//	Finish    back into service (InPlaceUpdateReady True)
//
// A newer revision may take over at any point: Begin starts from what the Pod has then, and takes along what the update before has not
// done. A Pod's labels name the revision of an update from its start, so that the change from there says nothing of that.
package inplace
