// Package plan is the vocabulary of decisions: what a controller wants written, in which order, and what it held back and why.
//
// A Plan is a value. It can be printed, compared, saved as a test case and replayed by a simulator; it holds no client and no clock, and
// making one changes nothing. Package apply carries it out.
package plan
