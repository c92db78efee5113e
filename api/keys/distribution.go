package keys

// Annotations and the label of the copies that a ResourceDistribution makes. Its controller writes and reads them.
const (
	// DistributedFrom is the annotation with the name of the ResourceDistribution.
	DistributedFrom = "kruise.io/resourcedistribution.resource.from"
	// DistributedHash is the annotation with the SHA-256 of the resource that the copy was made from, in hexadecimal digits.
	DistributedHash = "kruise.io/resourcedistribution.resource.hashcode"
	// DistributedKeys is the annotation with the keys of labels and annotations that the resource declares, as JSON, so that those which it
	// declares no more can be removed.
	DistributedKeys = "apps.kruise.io/distributed-keys"
	// DistributedBy is the label with the UID of the ResourceDistribution. Only objects that have it are watched.
	DistributedBy = "apps.kruise.io/distributed-by"
)
