// Package releasing is the webhook for workloads that Rollouts name. In the moment in which the template of such a workload changes, the
// answer freezes the workload and marks it, so that no Pod is updated before the Rollout says so. During a release it keeps what others
// write from letting the workload go on by itself.
//
// It changes nothing of a workload for which there is no Rollout, whatever marks it carries, nor during the end of a release because its
// Rollout is disabled or deleted: then nothing must be frozen again.
package releasing
