// Package daemonset keeps one Pod on every node that fits the template and rolls new templates out over the nodes in stages.
//
// Its promise: a node runs one Pod, and two only while a surge or the end of the old one needs it; no node gets a Pod that its template
// does not fit; a rollout never makes more nodes unavailable than maxUnavailable, nor more run two Pods than maxSurge, and touches none
// that the partition or the node selector leaves out, whatever fails in between and whenever the controller is killed.
//
// A pass reads once (read.go), classifies nodes and Pods (classify.go), plans (plan*.go), and writes a status (status.go).
// Package apply writes. What is planned for is a node rather than a Pod:
//
//	no Pod ── created ── runs ──┬── deleted, created anew          Standard
//	                            ├── a new one beside it, deleted   Standard with maxSurge
//	                            └── changed in place               InPlaceIfPossible
//
// A preDelete hook holds a Pod in PreparingDelete before each deletion.
package daemonset
