// Package promises holds a controller against what it promises, in simulated clusters in which everything goes wrong that can: its cache
// lags, its writes fail, land late or land without an answer, the API server is overloaded, it crashes between any two writes, and users
// change their minds.
//
// A kind says who acts in the cluster and how its controller is started. All else is here: a cluster for each seed, its turmoil and its
// rest, the check that planning is pure and that a restart writes nothing, the story of a seed that went wrong, and mistakes made on
// purpose to see that the checks notice.
//
//	func TestPromises(t *testing.T)   { suite(Plan).Hold(t) }
//	func TestRunsRepeat(t *testing.T) { suite(Plan).Repeat(t) }
//
// CrashAnywhere takes the chance out of crashes: it has the controller crash at every single write of a rollout, before it and after it.
//
// KRUISE_SEEDS is the number of clusters, KRUISE_FIRST_SEED the seed of the first of them, KRUISE_SEED that of a single one to run again
// and tell the story of.
package promises
