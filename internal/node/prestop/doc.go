// Package prestop runs what a container asks for before it is stopped, as a kubelet would, whoever stops it.
//
// Its promise: hook and end share one grace period, which a hook can't exceed; and what is left of it, two seconds at least, is the container's.
package prestop
