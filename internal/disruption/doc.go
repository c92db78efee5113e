// Package disruption evaluates what somebody wants to do to a Pod that a PodUnavailableBudget guards, and keeps the ledger of what it has
// granted.
//
// The inequality that it keeps, however many evaluators of however many processes there are:
//
//	requests granted since the numbers of a budget were computed  ≤  what the numbers allow
//
// Within a process the requests under one budget wait for each other. Between processes only the write of the ledger counts: each evaluator
// writes it over the version that it read, and of two who read the same version one has to evaluate again. Nothing is refused by what a
// cache says alone, which may be behind, and nothing that the status does not permit is granted by it.
//
// A request that is granted costs one write, and one read of the Pod if it comes from outside of this process; one that is free costs
// neither.
package disruption
