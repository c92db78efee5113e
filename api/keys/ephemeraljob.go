package keys

const (
	// EphemeralContainersCleanup is a finalizer of EphemeralJobs made by older installations. Nothing can be taken out of a Pod again: the
	// manager takes the finalizer off.
	EphemeralContainersCleanup = "apps.kruise.io/ephemeralcontainers-cleanup"
	// EphemeralJobID is the environment variable of each container that an EphemeralJob has added, with the UID of the job. The manager
	// writes it, and finds by it what it has done.
	EphemeralJobID = "KRUISE_EJOB_ID"
)
