// Package forecast tells what a controller will do: it runs the controller's own Read, Plan and Status over a copy of what was read once,
// does what the plan says to that copy, lets the Pods in it start, and goes on until the controller wants nothing more.
//
// It promises the order of the updates, and whether each of them is in place, whenever the health of Pods does not change: Pods that are
// broken now stay so until they are updated, all others become ready at once. So the time that it gives is the least that the fields of
// the workload (minReadySeconds, gracePeriodSeconds) ask for. Lifecycle hooks hold whatever they hold. PodUnavailableBudgets are not part
// of it.
package forecast
