// Package imagepulljob has nodes pull an image before Pods need it.
//
// Its promise: every selected node is asked once, by its NodeImage, and again only by a job that never completes, once a day; no more nodes that are
// Ready pull at the same time than the job's parallelism allows, whatever fails in between and whenever the controller is killed; and a node is
// counted once, as pulling, succeeded or failed.
//
// One pass looks once (observe.go), sorts the nodes (survey.go), decides (plan*.go), and reports (status.go). Only observing reads and only package
// apply writes. The nodes' answers are judged by package rules/pull; what no job is concerned with is left to package nodeimage, and the Secrets
// copied for jobs, once they are there, to package pullsecret.
package imagepulljob
