// Package disruptions runs all controllers that disrupt Pods under one PodUnavailableBudget, with users, evictions and two replicas of the
// webhook, and checks that together they never disrupt more Pods than the budget allows.
package disruptions
