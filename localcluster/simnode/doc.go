// Package simnode plays the kubelets of any number of nodes, and the containers of all their Pods.
//
// Promise: what a controller can see of a Pod (status, conditions, container restarts, the final deletion) is what a
// kubelet would have written, in the same order and in no more writes. Nothing runs; time passes as the flags and the
// Pod's annotations say.
//
// The heart is pure: Advance moves a Sandbox, which is what a container runtime would remember of one Pod, to a given
// moment, and Status reports it as a kubelet does. Kubelets feeds them with Pods and writes what they say.
//
//	admitted ──start──► sandbox ──init containers in order──► running ──image changed──► exited ──restart──► running
//	                                                             └──deleted──stop──► all exited ──► last status, DELETE
package simnode
