// Package cri asks the container runtime of a node for the few things that the daemon needs, in version 1 of the Container Runtime Interface. The
// daemon looks, pulls images, runs commands and stops containers: what is not here, above all creating, starting and removing, is the kubelet's
// affair.
//
// A runtime that is away is not an error of what was asked of it: IsAway tells the two apart. Connections are made anew by themselves.
package cri
