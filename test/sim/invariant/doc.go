// Package invariant checks promises over the history of a simulated cluster: every revision of every object, who wrote it, and what the
// writer could know. It does its own arithmetic, so that a mistake in the product's does not hide itself.
//
// A controller is judged by what it knew. A Pod that broke after the controller had looked counts as the controller saw it; but what the
// controller itself has done counts from the moment that it was done, however far its cache lags behind.
package invariant
