// Package pullsecret reconciles the Secrets that were copied for ImagePullJobs.
//
// Its promise: a copy holds what its source holds, as long as a job needs it, and is gone soon after the last one does not: when the job
// has completed or been deleted, or has been taken from the cluster in any other way.
package pullsecret
