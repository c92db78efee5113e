// Package resourcedistribution keeps copies of a Secret or ConfigMap in many namespaces.
//
// Its promise: each namespace that is to have a copy has one that says what the resource says, and keeps it so, whoever edits or deletes
// it; a namespace that is to have none any more loses it. An object that the ResourceDistribution has not made is never touched, unless it
// may be taken over: nobody controls it, and the conflict policy says so. Every write is conditional on the version that was read.
//
// Copies carry a label, and only the metadata of what carries it is kept in memory. A copy is read, live, when its version is not one that
// was written or compared before.
package resourcedistribution
