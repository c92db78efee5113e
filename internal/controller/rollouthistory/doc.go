// Package rollouthistory notes in the record of a release which Pods each of its steps updated, by the labels that they have when it is
// over. The controller of Rollouts makes the record.
//
// Its promise: a record is filled in once and never changes again, whatever becomes of the Pods.
package rollouthistory
