// Package pods changes new Pods before they are stored: one chain of steps in one order, of which each sees what the ones before have done,
// and one answer, a patch that touches only what changed.
//
// A step is a pure function of the Pod, of its namespace and of what is known from caches. Done again on its own result it changes nothing,
// so that the API server may ask twice. A Pod that a step denies is answered with a reason and status 422, any other error with 500.
package pods
