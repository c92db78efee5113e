// Package certs keeps the CA of all managers, and gives each manager a serving certificate that the API server trusts.
//
// The promise: no manager ever serves a certificate that the API server refuses. It rests on one inequality,
//
//	CAs in every webhook configuration and CRD  ⊇  CAs of the certificates that managers serve
//
// kept in two ways. A manager serves under a CA only after it has seen for a while that every configuration trusts that CA, and goes on
// with its last certificate until then. A CA that is replaced stays in the configurations for a day, see package webhookconfig.
//
// Only the CA is stored, in a Secret (or in a folder, for managers outside the cluster), and only on top of the version that was read: of
// two managers that start at once on an empty Secret one wins, and the other uses the CA of the winner. Serving certificates are signed in
// memory by each manager and never stored.
//
// Clocks may be wrong, and differ between managers. So no date depends on the clock of a manager but the end of a CA, ten years from when
// it is made: a CA begins in 1970, and a serving certificate has the dates of its CA. A CA made by a clock that is 20 years ahead ends in
// 30 years, and is good for everybody. One made by a clock in 1970 ends ten years after this code was written. One that has ended already
// for others is replaced by them, for good: the later end suits a clock that is behind, too. So managers never replace each other's CA in
// turns.
//
// github.com/open-policy-agent/cert-controller replaces the CA in the configurations at once, without an overlap, and ends the process for
// a new certificate, which is why it is not used.
package certs
