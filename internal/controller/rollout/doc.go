// Package rollout releases every change of the template of a workload in steps: so many updated Pods, so much traffic, a pause or an
// approval, the next step. What it decides is in internal/rules/release; it reads what that asks for, and carries out what it decides.
//
// Its promise: the status is stored before anything is done, and every action is a wanted state, so a controller that stops at any point
// goes on where it was; no step is left without its pause or its approval; traffic never leads to Pods that are not there; and when a
// release ends, everything that it has changed is as before, and its mark comes off the workload last.
package rollout
