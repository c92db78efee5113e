// Package imagepulljob has nodes pull an image before Pods need it.
//
// Its promise: every selected node is asked once, by its NodeImage, and again only by a job that never completes, once a day; of the nodes
// that are Ready no more pull at the same time than the job's parallelism allows, whatever fails in between and whenever the controller is
// killed; and a node is counted once, as pulling, succeeded or failed.
//
// Package rules/pull evaluates the nodes' answers. Tags without jobs are left to package nodeimage, and the Secrets copied for jobs to
// package pullsecret.
package imagepulljob
