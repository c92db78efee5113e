// Package node is the daemon of one node: it does beside the kubelet what the Kubernetes API can't ask of one. It pulls images before Pods need
// them, and tells what the containers of a Pod really run with.
//
// Promise: it sees of the cluster what concerns its node and no more, keeps nothing on disk, and never creates, starts or removes a container. What
// it has to do is read from the API, what it has done from the container runtime, so that it may be killed at any point.
//
// Work is done by workers, each a package below this one with a Config, a function Scope that says what the worker watches, and a function Add. To
// add a worker, add a line to workers, and its kinds to the daemon's role and to the policies that hold each daemon to its own node
// (config/daemon/rights.yaml and policy.yaml).
package node
