// Package persistentpodstate records where the Pods of workloads run, so that the admission of new Pods can bind them to the same place.
//
// Its promise: a Pod that is ready is recorded, and its record stays while the Pod is not ready or gone; a record goes when the workload
// has no place for its Pod any more, when it is too old, or when a Pod that was bound to it could not be scheduled for too long. A Pod is
// only deleted where the spec asks for it, after its record is gone, and only as long as no node was found for it. No Pod is ever moved.
//
// A second controller makes the PersistentPodState of a StatefulSet whose annotations ask for one. It touches none that another has made.
package persistentpodstate
