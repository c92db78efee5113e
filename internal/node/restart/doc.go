// Package restart carries out the ContainerRecreateRequests for the Pods of a node: it runs the hooks of the containers and stops them, one after the
// other, and follows what the kubelet makes of it.
//
// Its promise: what package recreate decides is stored before it is done, so that a daemon that is killed at any point goes on where it was. Requests
// of one Pod are carried out one after the other, those of different Pods at the same time.
package restart
