package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AnalysisPhase is how far an analysis, a check or the guard is.
type AnalysisPhase string

const (
	// AnalysisRunning measures.
	AnalysisRunning AnalysisPhase = "Running"
	// AnalysisSuccessful has found nothing wrong.
	AnalysisSuccessful AnalysisPhase = "Successful"
	// AnalysisFailed has found the new version to be bad.
	AnalysisFailed AnalysisPhase = "Failed"
	// AnalysisInconclusive could not tell.
	AnalysisInconclusive AnalysisPhase = "Inconclusive"
	// AnalysisOverridden was bad or inconclusive, and somebody has the release go on.
	AnalysisOverridden AnalysisPhase = "Overridden"
)

// AnalysisStatus is how the analysis of the current step does.
type AnalysisStatus struct {
	// phase is Running, Successful, Failed, Inconclusive or Overridden.
	Phase AnalysisPhase `json:"phase"`
	// hash is that of the analysis, its step and the new revision: when it changes, the analysis begins anew.
	// +optional
	Hash string `json:"hash,omitempty"`
	// startedAt is when it began.
	// +optional
	StartedAt metav1.Time `json:"startedAt,omitempty"`
	// message says which check has failed, and what was measured last.
	// +optional
	Message string `json:"message,omitempty"`
	// checks are how each check does.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Checks []CheckStatus `json:"checks,omitempty"`
}

// CheckStatus is how a check does.
type CheckStatus struct {
	// name is that of the check.
	Name string `json:"name"`
	// phase is Running, Successful, Failed or Inconclusive.
	Phase AnalysisPhase `json:"phase"`
	// successful is the number of measurements that succeeded.
	// +optional
	Successful int32 `json:"successful"`
	// failed is the number of measurements that failed.
	// +optional
	Failed int32 `json:"failed"`
	// inconclusive is the number of measurements that told nothing.
	// +optional
	Inconclusive int32 `json:"inconclusive"`
	// measurements are the last five, the latest last.
	// +optional
	// +kubebuilder:validation:MaxItems=5
	Measurements []Measurement `json:"measurements,omitempty"`
}

// Measurement is what was measured once.
type Measurement struct {
	// phase is Successful, Failed or Inconclusive.
	Phase AnalysisPhase `json:"phase"`
	// startedAt is when it began.
	StartedAt metav1.Time `json:"startedAt"`
	// value is what was measured: a number, a status code, a value of a body, or the name of a Job.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Value string `json:"value,omitempty"`
	// message says why it has failed or tells nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// GuardStatus is what the guard compares updated Pods with, and what it has found.
type GuardStatus struct {
	// phase is Running, Failed, or Overridden when somebody has the release go on.
	Phase AnalysisPhase `json:"phase"`
	// begun is when the old Pods were looked at, before the first was updated.
	Begun metav1.Time `json:"begun"`
	// oldPods is how many old Pods are compared with: at most 200.
	OldPods int32 `json:"oldPods"`
	// oldFailed are those of them that had failed, by their number in the order of creation.
	// +optional
	// +kubebuilder:validation:MaxItems=200
	OldFailed []int32 `json:"oldFailed,omitempty"`
	// readySeconds is how long an updated Pod may be not ready before it counts as failed.
	ReadySeconds int32 `json:"readySeconds"`
	// failed are updated Pods that have failed, the first twenty of them.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	Failed []FailedPod `json:"failed,omitempty"`
	// message says how many Pods failed, and why the first one did.
	// +optional
	Message string `json:"message,omitempty"`
}

// FailedPod is an updated Pod that has failed.
type FailedPod struct {
	// name is the name of the Pod.
	Name string `json:"name"`
	// since is when it was created, or updated in place.
	Since metav1.Time `json:"since"`
	// reason says how it has failed.
	Reason string `json:"reason"`
}

// Rejection is a revision that was rolled back without a person.
type Rejection struct {
	// revision is the revision.
	Revision string `json:"revision"`
	// time is when it was rolled back.
	Time metav1.Time `json:"time"`
	// message says why.
	Message string `json:"message"`
}
