// Package certs gives the admission server its certificate, and gives the API server the means to trust it.
//
// The promise: at no moment does a manager present a certificate that the API server would refuse. It rests on one inequality,
//
//	CAs in every webhook configuration and CRD  ⊇  CAs of every certificate that any manager presents
//
// kept in two ways. A manager presents a certificate only after it has seen for a while that every configuration trusts it, and goes on with
// its last one until then. And a CA that is replaced stays in the configurations for a day.
//
// The truth lies in one place, a Secret (or a folder, for a manager outside the cluster), that is only written on top of the version that
// was read: of two managers that start at once on an empty Secret one wins, and the other takes what the winner stored. Every manager runs
// the same loop; there is no leader, because every manager serves.
//
// Certificates live 90 days and CAs a year, so that replacing them is an everyday event. Nothing is written unless something changed.
//
// github.com/open-policy-agent/cert-controller was weighed first: it replaces the CA in the configurations at once, without an overlap, and
// ends the process for a new certificate, which is what this package exists to avoid.
package certs
