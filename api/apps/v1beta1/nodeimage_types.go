package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeImage lists the images that the node of the same name is to pull. ImagePullJobs write into its spec, and so may users who mean one
// definite node; the daemon of the node answers in its status. Both speak of one round of pulling by the image, the tag and the version of
// the tag.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".status.desired",description="The number of tags to pull."
// +kubebuilder:printcolumn:name="PULLING",type="integer",JSONPath=".status.pulling",description="The number of tags that are being pulled."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="The number of tags that the node has."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="The number of tags that the node has given up."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the NodeImage was created."
type NodeImage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +optional
	Spec NodeImageSpec `json:"spec,omitempty"`
	// status is what was last seen.
	// +optional
	Status NodeImageStatus `json:"status,omitempty"`
}

// NodeImageList is a list of NodeImages.
//
// +kubebuilder:object:root=true
type NodeImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeImage `json:"items"`
}

// MaxNodeImages is the most repositories that one NodeImage can list, those of all jobs together.
const MaxNodeImages = 256

// NodeImageSpec is the wanted state of a NodeImage.
type NodeImageSpec struct {
	// images are the tags to pull, by repository: nginx, quay.io/a/b. Repositories of Docker Hub are named as users do, without
	// docker.io/library. At most 256.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) > 0)",message="the name of an image can not be empty"
	Images map[string]ImageSpec `json:"images,omitempty"`
}

// ImageSpec is what to pull of one repository.
type ImageSpec struct {
	// pullSecrets are Secrets with credentials for the tags that users list here, in the namespace kruise-daemon-config. The manager seals
	// what they hold for the daemon of the node, see credentials of the tags. Jobs name none here.
	// +optional
	PullSecrets []ReferenceObject `json:"pullSecrets,omitempty"`
	// tags are the tags to pull, sorted, each once.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=tag
	Tags []ImageTagSpec `json:"tags,omitempty"`
	// sandboxConfig holds labels and annotations that the container runtime is given with the pull of tags that no job wants. Those that
	// jobs want have their own.
	// +optional
	SandboxConfig *SandboxConfig `json:"sandboxConfig,omitempty"`
}

// ReferenceObject names an object of a namespace.
type ReferenceObject struct {
	// namespace is the namespace of the object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// mode is batch for a Secret that a manager of an earlier version has copied for ImagePullJobs: it is taken off together with the
	// repository. Otherwise it is taken off as soon as the Secret is gone.
	// +optional
	Mode ReferenceMode `json:"mode,omitempty"`
}

// ReferenceMode says how long a reference stays.
type ReferenceMode string

// ReferenceBatch marks a Secret that a manager of an earlier version has copied for ImagePullJobs.
const ReferenceBatch ReferenceMode = "batch"

// ImageTagSpec is a tag, or a digest, to pull.
//
// +kubebuilder:validation:XValidation:rule="has(self.createdAt)",message="is required",fieldPath=".createdAt",reason="FieldValueRequired"
// +kubebuilder:validation:XValidation:rule="has(self.pullPolicy) && has(self.pullPolicy.ttlSecondsAfterFinished)",message="pullPolicy.ttlSecondsAfterFinished is required",fieldPath=".pullPolicy",reason="FieldValueRequired"
type ImageTagSpec struct {
	// tag is the tag, or the digest such as sha256:0123...
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Tag string `json:"tag"`
	// createdAt is when this round of pulling was asked for. Defaults to now.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// pullPolicy sets the limits of the pull.
	// +optional
	PullPolicy *ImageTagPullPolicy `json:"pullPolicy,omitempty"`
	// ownerReferences are the jobs that want the tag; it is taken off when all of them are gone. One without any is taken off only after
	// its time.
	// +optional
	// +kubebuilder:validation:MaxItems=1024
	OwnerReferences []corev1.ObjectReference `json:"ownerReferences,omitempty"`
	// version is the number of this round. A higher one has the node pull anew. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Version int64 `json:"version,omitempty"`
	// imagePullPolicy says what to do when the node has the image: Always asks the registry whether the tag has moved, IfNotPresent leaves
	// it be. Defaults to IfNotPresent.
	// +optional
	ImagePullPolicy ImagePullPolicy `json:"imagePullPolicy,omitempty"`
	// sandboxConfig holds labels and annotations that the container runtime is given with the pull, of the job that asked for this round.
	// There is none while jobs of several namespaces that say different things want the tag: what one tenant says is not for the pulls of
	// others.
	// +optional
	SandboxConfig *SandboxConfig `json:"sandboxConfig,omitempty"`
	// credentials are those for the registry, encrypted for the daemon of the node, of each owner apart. The manager writes them.
	// +optional
	// +kubebuilder:validation:MaxItems=1024
	Credentials []SealedCredentials `json:"credentials,omitempty"`
}

// SealedCredentials are credentials that only the daemon of the node can read.
type SealedCredentials struct {
	// owner is the UID of the job whose credentials they are. Empty for those of the pullSecrets of the repository.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Owner string `json:"owner,omitempty"`
	// version changes with the credentials and with status.credentialsKey.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
	// sealed are the credentials, encrypted for status.credentialsKey by HPKE (RFC 9180). Empty while the daemon has published no key: its
	// pull waits.
	// +optional
	Sealed []byte `json:"sealed,omitempty"`
}

// ImageTagPullPolicy sets the limits of a pull.
type ImageTagPullPolicy struct {
	// timeoutSeconds is how long one attempt may take, in seconds. Defaults to 600.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// backoffLimit is how often to try again after a failed attempt; a negative number counts as 3. Defaults to 3.
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	// ttlSecondsAfterFinished is how long after the end of the pull the tag is taken off, in seconds. It must be given.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
	// activeDeadlineSeconds is how long all attempts together may take, in seconds. Defaults to no limit.
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
}

// NodeImageStatus is what the node has done.
type NodeImageStatus struct {
	// desired is the number of tags to pull.
	// +optional
	Desired int32 `json:"desired"`
	// succeeded is the number of tags that the node has.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// failed is the number of tags that the node has given up.
	// +optional
	Failed int32 `json:"failed"`
	// pulling is the number of tags that are being pulled.
	// +optional
	Pulling int32 `json:"pulling"`
	// waiting is the number of tags that wait for others.
	// +optional
	Waiting int32 `json:"waiting,omitempty"`
	// imageStatuses are the tags by repository.
	// +optional
	ImageStatuses map[string]ImageStatus `json:"imageStatuses,omitempty"`
	// firstSyncStatus tells of the tags that were there when the node came.
	// +optional
	FirstSyncStatus *SyncStatus `json:"firstSyncStatus,omitempty"`
	// credentialsKey is the public key of the daemon of the node, for credentials. The daemon makes a new one at each start.
	// +optional
	CredentialsKey []byte `json:"credentialsKey,omitempty"`
}

// ImageStatus is what the node has done of one repository.
type ImageStatus struct {
	// tags are the tags, sorted.
	// +optional
	Tags []ImageTagStatus `json:"tags,omitempty"`
}

// ImagePullPhase says how far the pull of a tag has come.
type ImagePullPhase string

const (
	// ImagePhaseWaiting is for a pull that waits for others.
	ImagePhaseWaiting ImagePullPhase = "Waiting"
	// ImagePhasePulling is for one under way, between two attempts too.
	ImagePhasePulling ImagePullPhase = "Pulling"
	// ImagePhaseSucceeded is for an image that is on the node.
	ImagePhaseSucceeded ImagePullPhase = "Succeeded"
	// ImagePhaseFailed is for a pull that was given up.
	ImagePhaseFailed ImagePullPhase = "Failed"
)

// ImageTagStatus is what the node has done of one tag.
type ImageTagStatus struct {
	// tag is the tag, or the digest.
	Tag string `json:"tag"`
	// phase is Waiting, Pulling, Succeeded or Failed.
	Phase ImagePullPhase `json:"phase"`
	// progress is how much has been pulled, in percent. Container runtimes do not tell: it is 0 or 100.
	// +optional
	Progress int32 `json:"progress,omitempty"`
	// startTime is when this round began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when it ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// version is the number of the round that this speaks of.
	// +optional
	Version int64 `json:"version,omitempty"`
	// imageID is what the container runtime calls the image.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// message says what went wrong.
	// +optional
	Message string `json:"message,omitempty"`
}

// SyncStatus tells of a sync.
type SyncStatus struct {
	// syncAt is when it ended.
	// +optional
	SyncAt metav1.Time `json:"syncAt,omitempty"`
	// status is Succeeded or Failed.
	// +optional
	Status SyncStatusPhase `json:"status,omitempty"`
	// message says what went wrong.
	// +optional
	Message string `json:"message,omitempty"`
}

// SyncStatusPhase says how a sync ended.
type SyncStatusPhase string

const (
	// SyncStatusSucceeded is for one that brought all images.
	SyncStatusSucceeded SyncStatusPhase = "Succeeded"
	// SyncStatusFailed is for one that did not.
	SyncStatusFailed SyncStatusPhase = "Failed"
)
