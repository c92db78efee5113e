// Package traffic reads the Services and routes of releases, tells what they lead where, and says what to write so that they lead
// elsewhere.
//
//	traffic.go   Routings, what is asked about, and Observed, the answer: what is seen, and the writes for each wanted state
//	read.go      every read
//	service.go   the user's Service, which may be pinned to old Pods, and the one for new Pods
//	route.go     objects that are edited in place: routes of Gateway API and Istio, and any other kind by a script
//	ingress.go   Ingresses, which get one beside them
//	kinds.go     caches of kinds that nobody knows before a Rollout names them
//
// What is seen is computed from the objects alone. A route is what a step wants if it is, to the byte, what package rules/traffic makes of
// the user's own for that step; so nothing has to be remembered, and a write that was lost, undone by somebody or done twice shows.
// Each object is changed by one write that carries what the user wrote along, on the condition that it is still as it was read. So there is
// no moment in which a route is changed and the original is not kept.
package traffic
