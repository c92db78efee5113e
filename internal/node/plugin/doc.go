// Package plugin asks programs of the node for the credentials that open the registry of an image, by the protocol of kubelets' credential provider
// plugins: a request in JSON on the standard input, the answer in JSON on the standard output. So one configuration serves the kubelet and Kruise.
//
// Its promise: a program is run as often as its answers ask for and no oftener, once at a time; and one that hangs, fails or
// talks nonsense takes no more than half of the time that is left, and keeps no other credentials from being tried.
//
// Programs that want a token of the Pod's account can't be asked: what is pulled ahead is for no Pod yet.
package plugin
