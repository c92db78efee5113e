// Package budget is the arithmetic of staged rollouts: how many Pods may be created, deleted and updated now.
//
// It is the only place where percentages become numbers. With R replicas, U maxUnavailable, S maxSurge, P partition and N active Pods, a
// plan that follows it keeps:
//
//	N                  <= R + S          while nothing was scaled in
//	newly unavailable  <= U + (N - R)    surplus Pods may go without costing availability
//	updated            <= R - P          unless Pods of older revisions are missing
//
// Worked example: R 5, P 3, S 20% (1), U 0. All five Pods are old, the new revision is wanted on two. Scale asks for one more Pod, of the
// new revision (N 6). Once it is available, Update allows U + N - R = 1 old Pod to go. N is 5 again, one new Pod is still missing, so one
// more is created; when it is available, nothing is missing and the surplus old Pod goes: 3 old, 2 new.
package budget
