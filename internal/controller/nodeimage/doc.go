// Package nodeimage keeps a NodeImage for every node that is ready to pull images, and keeps what is in it true.
//
// Its promise: a node that has been Ready for a while has a NodeImage with the labels of the node, and one that is gone has none; nothing
// stays in a NodeImage that is not wanted any more; and a round of pulling that the node does not answer ends all the same.
//
// It has two controllers. CreationKind reconciles nodes and creates NodeImages. Kind reconciles NodeImages. Neither has a status of its
// own: the daemon of the node writes that of a NodeImage, except for rounds that it did not answer in time.
package nodeimage
