// Package deployment updates the Pods of native Deployments in batches.
//
// A Deployment with the label keys.AdvancedDeployment and the annotation keys.DeploymentStrategy is paused, and the annotation says how
// many of its Pods are to be updated. This controller moves so many from the old ReplicaSets to the new one, within maxSurge and
// maxUnavailable of the Deployment (package replicasets), and never writes anything else that counts: whoever unpauses the Deployment, at
// any moment, has the native controller go on with the same ReplicaSets.
//
// Who writes what meanwhile:
//
//	native controller    the Deployment's status and revision; the revision of its ReplicaSets; their sizes when the Deployment is
//	                     scaled, and whatever they lack of spec.replicas + maxSurge in all
//	this controller      the new ReplicaSet, exactly as the native controller makes it, and status.collisionCount if its name is
//	                     taken; the sizes of ReplicaSets, in moves that keep their sum; the annotation keys.HeldReplicas for as long
//	                     as a move lasts
//
// A move takes Pods from old ReplicaSets and gives as many to the new one: two writes, between which the native controller would give back
// what was taken. So the first of them also holds the ReplicaSet: a policy of the API server (config/rollouts/policy.yaml) refuses writes
// that leave the annotation and change the size. Without that policy there may be more Pods than maxSurge allows, for moments. A move that
// was interrupted is gone on with, or let go.
//
// Two moves need no hold: the first one, where it takes nothing, is the write that makes the new ReplicaSet, with its Pods; and once that
// is the largest, the native controller gives it what is taken from the others.
//
//	annotation ── new ReplicaSet ──┬── hold, take ── give ── let go ──┬── as many are updated as the annotation says
//	                               ├── take ── (given natively) ──────┤
//	                               └───── the new Pods get available ─┘
//
// A Deployment that is not paused is left to the native controller. One that waits for a Rollout that is gone, and for no BatchRelease
// either, is given back to it: nobody else would ever unpause it.
package deployment
