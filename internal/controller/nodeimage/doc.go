// Package nodeimage keeps a NodeImage for every node that is ready to pull images, and keeps what is in it true.
//
// Its promise: a node that has been Ready for a while has a NodeImage with the labels of the node, and one that is gone has none; nothing stays in a
// NodeImage that nobody wants any more; and a round of pulling that the node does not answer ends all the same.
//
// Two loops share the work. The one over nodes (birth.go) makes NodeImages. The one over NodeImages looks once, decides with package rules/pull
// (plan.go), and reports nothing: what the status says is up to the node, but for the rounds that the node has let pass.
package nodeimage
