// Package analysis makes the measurements of Rollouts that need the network: queries of Prometheus, and HTTP requests. What they mean, and
// which are due, is decided in internal/rules/analysis; Jobs are made and seen by the controller.
//
// A Runner is told which measurements of a Rollout are to be under way. It begins what is new, gives up what is not wanted any more, and
// keeps results until then, so that telling it the same again changes nothing. It asks for a pass over the Rollout when one has ended.
// Every measurement has a timeout, an answer of a bounded size, and a connection of its own, which ends with it.
//
// Requests go where the author of a Rollout wants, from the network of the managers. So the address of a connection is looked at after
// names are resolved: see Addresses. Redirections are not followed, proxies of the environment not used, and credentials sent only to
// the server that their Secret names.
package analysis
