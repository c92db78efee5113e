// Package probe asks the containers of a node what the NodePodProbe of the node's name says, each at its own pace, and reports the results there.
//
// Its promise: a result is reported when it changes, within a second or two; what has not changed is not reported but every ten minutes. A question that is
// taken back is not put again, and one that hangs holds up no other.
package probe
