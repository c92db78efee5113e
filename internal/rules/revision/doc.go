// Package revision keeps a workload's history of templates as ControllerRevisions.
//
// A revision's name ends in a hash of its bytes, and Pods carry that name as a label, so the bytes are a contract: if the same template gave
// other bytes after an upgrade, every Pod would look outdated. Data therefore writes the bytes that clusters already store, whatever the
// Kubernetes libraries of the day would write.
package revision
