// Package containerrecreate looks after requests to recreate containers as far as the API server is concerned: it takes the Pod out of service where
// a request asks for that, passes on which containers run anew, ends what can't go on, and cleans up. What is stopped on the node, and when, is the
// daemon's business.
//
// Its promise: a request does not outlive its Pod or its deadline, and a Pod that was taken out of service for one comes back when it ends.
package containerrecreate
