// Package clusters connects to the clusters that UnitedDeployments are spread over.
//
// A cluster is found by a cluster object in the hub, which is the cluster that this manager works for: a ClusterProfile of SIG Multicluster
// or a Secret with a kubeconfig. Each cluster has a goroutine of its own, which reads the object, connects, fills caches and asks the
// cluster every ten seconds whether it is still there and still the same. What it finds is a View, which is there at once for whoever asks:
// nobody ever waits for another cluster.
//
//	kubeconfig.go   what of a kubeconfig is used: it is the input of somebody who may be hostile
//	access.go       how a cluster object says that its cluster is reached
//	session.go      one connection to a cluster: its client, its caches, its kinds
//	probe.go        whether the cluster answers, and is still the one that it was
//	link.go         the goroutine of a cluster, by the rules of package connection
//	registry.go     all clusters, and who wants them
//	transport.go    HTTP that does not wait for ever
//
// Objects in other clusters have labels and no owner reference: a garbage collector deletes what an unknown owner owns.
package clusters
