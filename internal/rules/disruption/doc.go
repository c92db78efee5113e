// Package disruption is the arithmetic of PodUnavailableBudgets, which their controller and the evaluation of requests on Pods share: how
// many Pods are to stay available, how many are, and how many more may be made unavailable.
//
//	allowed = max(0, current - desired)
//
// Between two counts, permissions are kept in a ledger in the status: a Pod in it counts as unavailable before anything is to be seen on
// it. So no two permissions ever count on the same Pod, and what nobody carried out is given back when its time is over.
//
// Numbers and percentages are read by package budget, packages inplace and sidecar know updates in place.
package disruption
