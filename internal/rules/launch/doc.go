// Package launch holds the containers of a new Pod back until it is their turn.
//
// A container of a lower priority starts only when all containers of higher ones are ready. Each container gets an environment variable
// that refers to a key of a ConfigMap, the barrier, and a kubelet can't create the container before the key is there. With the priorities
// sidecar 10 and main 0, the barrier has first the key p_10, and, once sidecar is ready, also p_0. Keys are never taken away: a container
// that restarts needs its own again.
package launch
