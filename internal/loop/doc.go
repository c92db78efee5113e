// Package loop is the one reconcile that all controllers share: read, plan, write, report.
//
// A controller is a value of type Kind, a table that says how owners of one type are reconciled:
//
//	func Kind(o Options) loop.Kind[*v1beta1.CloneSet, State, v1beta1.CloneSetStatus] {
//		return loop.Kind[*v1beta1.CloneSet, State, v1beta1.CloneSetStatus]{
//			Name:   "cloneset",
//			Owns:   []client.Object{&corev1.Pod{}},       // whose events ask for a pass over their controller
//			Read:   read(o),                              // every read of a pass, classified
//			Plan:   Plan,                                 // pure: what to write, what to hold back, when to look again
//			Status: Status,                               // pure: what the owner's status should be
//		}
//	}
//
// All files of a controller have the same names: doc.go (the promise), kind.go (the table, the options, which events ask for a pass),
// read.go (the Snapshot, and every read), classify.go (the State: the snapshot classified once), plan.go, status.go. A small controller
// folds them together.
//
// The manager runs a Kind by AddTo. Simulated clusters run it by New, with the same events (Kind.Events). What a controller keeps in memory
// of its owners is made in the function that returns the Kind, so that each start begins with nothing, and is dropped by Forget.
package loop
