// Package recreate answers the webhook of ContainerRecreateRequests: it judges a new request against the Pod as it is, freezes in the
// request what the Pod is, and keeps both as they are from then on.
package recreate
