// Package containerrecreate reconciles requests to recreate containers in the API server: it takes the Pod out of service where a request
// asks for that, notes which containers have restarted, ends requests that can't go on, and cleans up. The daemon of the node stops the
// containers.
//
// Its promise: a request does not outlive its Pod or its deadline, and a Pod that was taken out of service for one comes back when it ends.
package containerrecreate
