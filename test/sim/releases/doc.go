// Package releases lets the controllers of Rollouts, BatchReleases and Deployments live together in simulated clusters: beside the
// controllers of Kubernetes, users, a tool that writes the manifest of the Deployment back all the time, and faults.
package releases
