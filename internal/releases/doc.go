// Package releases holds what the controllers and the webhooks of Rollouts share: how a workload is read with all that belongs to it, which
// Rollouts and BatchReleases a change concerns, and how the changes of package steer are planned.
package releases
