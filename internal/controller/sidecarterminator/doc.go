// Package sidecarterminator lets Pods that do their work and end, such as those of Jobs, end although they have sidecars that run for ever:
// when all main containers have ended, the sidecars are stopped.
//
//	main containers end ──► request to stop the sidecars ──► they end ──► the kubelet ends the Pod
//	                   └──► the Pod's phase is set ──► the kubelet stops the sidecars whose exit codes do not count
//	                   └──► another image, on nodes where nothing can be stopped ──► it ends ──► the kubelet ends the Pod
//
// A Pod whose phase is set stays in it; the kubelet stops what still runs in it within its grace period. So room and quota are free a
// little earlier than they are. Nothing is stopped before the main containers have ended, and a sidecar whose exit code counts is stopped
// before any other one.
package sidecarterminator
