// Package podunavailablebudget keeps the numbers of PodUnavailableBudgets: how many Pods there should be, how many are to stay available,
// how many are, and how many more may be made unavailable. The evaluation of a request on a Pod uses them, and enters what it permits into
// the ledger beside them; here entries are taken out again, once what was permitted is to be seen, or its time is over.
//
//	permitted ──► in the ledger: counted as unavailable ──┬── the Pod is gone, or on its way: it is counted no more
//	                                                      ├── updated: after 10 s the Pod counts as what it is
//	                                                      └── nothing happened for 20 s: event NotDeleted, the Pod counts again
//
// The numbers and the ledger are always written over the version that they were computed from, so that no permission that was given
// meanwhile is lost.
//
// Pods that no budget was found for when they were created, or whose budget is gone or does not want them any more, get theirs here.
package podunavailablebudget
