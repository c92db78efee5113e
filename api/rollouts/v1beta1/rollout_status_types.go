package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutPhase is what a Rollout is doing.
type RolloutPhase string

const (
	// RolloutPhaseInitial is the phase of a Rollout that has not seen its workload.
	RolloutPhaseInitial RolloutPhase = "Initial"
	// RolloutPhaseHealthy is the phase of a Rollout without a release.
	RolloutPhaseHealthy RolloutPhase = "Healthy"
	// RolloutPhaseProgressing is the phase of a Rollout during a release.
	RolloutPhaseProgressing RolloutPhase = "Progressing"
	// RolloutPhaseTerminating is the phase of a Rollout that is being deleted.
	RolloutPhaseTerminating RolloutPhase = "Terminating"
	// RolloutPhaseDisabled is the phase of a Rollout that leaves its workload alone.
	RolloutPhaseDisabled RolloutPhase = "Disabled"
	// RolloutPhaseDisabling is the phase of a Rollout that ends its release in order to be disabled.
	RolloutPhaseDisabling RolloutPhase = "Disabling"
)

// StepState is what a step is doing.
type StepState string

const (
	// StepStateBeforeUpgrade prepares traffic before the first Pod is updated.
	StepStateBeforeUpgrade StepState = "BeforeStepUpgrade"
	// StepStateUpgrade updates Pods.
	StepStateUpgrade StepState = "StepUpgrade"
	// StepStateTrafficRouting moves traffic.
	StepStateTrafficRouting StepState = "StepTrafficRouting"
	// StepStateMetricsAnalysis judges the new version.
	StepStateMetricsAnalysis StepState = "StepMetricsAnalysis"
	// StepStatePaused waits for time or an approval.
	StepStatePaused StepState = "StepPaused"
	// StepStateReady is done: the next step begins. To approve a step is to write this over StepPaused.
	StepStateReady StepState = "StepReady"
	// StepStateCompleted is the state after the last step, and without a release.
	StepStateCompleted StepState = "Completed"
)

// FinalisingStep is a step on the way out of a release.
type FinalisingStep string

const (
	// FinalisingStepRouteTrafficToNew sends all traffic to the new version.
	FinalisingStepRouteTrafficToNew FinalisingStep = "FinalisingStepRouteTrafficToNew"
	// FinalisingStepRouteTrafficToStable restores the routes.
	FinalisingStepRouteTrafficToStable FinalisingStep = "FinalisingStepRouteTrafficToStable"
	// FinalisingStepRestoreTemplate puts the old Pod template back, in a rollback without a person.
	FinalisingStepRestoreTemplate FinalisingStep = "RestoreTemplate"
	// FinalisingStepRestoreStableService lets the Service select the Pods of all versions again.
	FinalisingStepRestoreStableService FinalisingStep = "RestoreStableService"
	// FinalisingStepRemoveCanaryService deletes the Service of the new version.
	FinalisingStepRemoveCanaryService FinalisingStep = "RemoveCanaryService"
	// FinalisingStepResumeWorkload lets the workload go on by itself.
	FinalisingStepResumeWorkload FinalisingStep = "ResumeWorkload"
	// FinalisingStepReleaseWorkloadControl deletes the BatchRelease.
	FinalisingStepReleaseWorkloadControl FinalisingStep = "ReleaseWorkloadControl"
	// FinalisingStepEnd is the end.
	FinalisingStepEnd FinalisingStep = "END"
)

// RolloutStatus is what was last seen, and where the release is.
type RolloutStatus struct {
	// observedGeneration is the generation of the Rollout that the status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// canaryStatus is where a release of canary or partition style is.
	// +optional
	CanaryStatus *CanaryStatus `json:"canaryStatus,omitempty"`
	// blueGreenStatus is where a release of blueGreen style is.
	// +optional
	BlueGreenStatus *BlueGreenStatus `json:"blueGreenStatus,omitempty"`
	// conditions are Progressing, Succeeded, Terminating, Ready, Stalled and Intercepted, with reasons.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []RolloutCondition `json:"conditions,omitempty"`
	// phase is Initial, Healthy, Progressing, Terminating, Disabling or Disabled.
	// +optional
	Phase RolloutPhase `json:"phase,omitempty"`
	// message says in a sentence what happens and what it waits for.
	// +optional
	Message string `json:"message,omitempty"`
	// currentStepIndex is that of canaryStatus or blueGreenStatus.
	// +optional
	CurrentStepIndex int32 `json:"currentStepIndex"`
	// currentStepState is that of canaryStatus or blueGreenStatus.
	// +optional
	CurrentStepState StepState `json:"currentStepState"`
	// approvals are the steps of the current release that were approved, the oldest first. Who approved them is in the audit log.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	Approvals []StepApproval `json:"approvals,omitempty"`
	// rejected is the last revision that was rolled back without a person. When the workload gets its template again, as from a GitOps
	// tool, no Pod is updated before somebody approves it.
	// +optional
	Rejected *Rejection `json:"rejected,omitempty"`
}

// StepApproval says that a step was approved.
type StepApproval struct {
	// step is the step, counted from 1.
	Step int32 `json:"step"`
	// time is when the approval was seen.
	Time metav1.Time `json:"time"`
	// despite says what the approval has overridden: Analysis, Guard or Rejected; empty for the pause of the step.
	// +optional
	Despite string `json:"despite,omitempty"`
}

// CommonStatus is what all styles say of a release.
type CommonStatus struct {
	// observedWorkloadGeneration is the generation of the workload that was last seen.
	// +optional
	ObservedWorkloadGeneration int64 `json:"observedWorkloadGeneration,omitempty"`
	// observedRolloutID names the release: the workload's rollouts.kruise.io/rollout-id, or its new revision.
	// +optional
	ObservedRolloutID string `json:"observedRolloutID,omitempty"`
	// rolloutHash is the hash of the steps that the release follows.
	// +optional
	RolloutHash string `json:"rolloutHash,omitempty"`
	// stableRevision is the revision that the release came from.
	// +optional
	StableRevision string `json:"stableRevision,omitempty"`
	// podTemplateHash is the value of the revision label of new Pods; empty until it is known.
	// +optional
	PodTemplateHash string `json:"podTemplateHash,omitempty"`
	// currentStepIndex is the current step, counted from 1.
	// +optional
	CurrentStepIndex int32 `json:"currentStepIndex"`
	// nextStepIndex is the step that follows, or -1 where none does. Written by a user, it makes that step the current one, once.
	// +optional
	NextStepIndex int32 `json:"nextStepIndex"`
	// currentStepState is what the step is doing. A user approves a step by writing StepReady over StepPaused.
	// +optional
	CurrentStepState StepState `json:"currentStepState"`
	// finalisingStep is how far the way out of the release is.
	// +optional
	FinalisingStep FinalisingStep `json:"finalisingStep,omitempty"`
	// message says what the step waits for.
	// +optional
	Message string `json:"message,omitempty"`
	// lastUpdateTime is when the state changed, or traffic was changed, last: pauses and grace periods count from it.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
	// analysis is how the analysis of the current step does; empty before it begins, and for a step without one.
	// +optional
	Analysis *AnalysisStatus `json:"analysis,omitempty"`
	// guard is what the guard compares updated Pods with, and what it has found.
	// +optional
	Guard *GuardStatus `json:"guard,omitempty"`
}

// CanaryStatus is where a release of canary or partition style is.
type CanaryStatus struct {
	CommonStatus `json:",inline"`

	// canaryRevision is the new revision as Rollouts compute it. It is not a label of Pods: see podTemplateHash.
	// +optional
	CanaryRevision string `json:"canaryRevision,omitempty"`
	// canaryReplicas is the number of updated Pods.
	// +optional
	CanaryReplicas int32 `json:"canaryReplicas"`
	// canaryReadyReplicas is the number of updated Pods that are ready.
	// +optional
	CanaryReadyReplicas int32 `json:"canaryReadyReplicas"`
}

// BlueGreenStatus is where a release of blueGreen style is.
type BlueGreenStatus struct {
	CommonStatus `json:",inline"`

	// updatedRevision is the new revision as Rollouts compute it. It is not a label of Pods: see podTemplateHash.
	// +optional
	UpdatedRevision string `json:"updatedRevision,omitempty"`
	// updatedReplicas is the number of updated Pods.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// updatedReadyReplicas is the number of updated Pods that are ready.
	// +optional
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas"`
}

// Types of conditions of a Rollout.
const (
	// ConditionProgressing says where the release is.
	ConditionProgressing = "Progressing"
	// ConditionSucceeded says how the last release ended.
	ConditionSucceeded = "Succeeded"
	// ConditionTerminating says how far the deletion of the Rollout is.
	ConditionTerminating = "Terminating"
	// ConditionReady is True while no release is under way.
	ConditionReady = "Ready"
	// ConditionStalled is True while a release does not go on without a person.
	ConditionStalled = "Stalled"
	// ConditionIntercepted is False if a change of the template has gone out without steps, because the webhook did not see it.
	ConditionIntercepted = "Intercepted"
)

// Reasons of condition Progressing, and of Terminating.
const (
	// ReasonInitializing is the start of a release.
	ReasonInitializing = "Initializing"
	// ReasonInRolling is a release that follows its steps.
	ReasonInRolling = "InRolling"
	// ReasonPaused is a release that spec.strategy.paused holds.
	ReasonPaused = "Paused"
	// ReasonCancelling is a release that is rolled back.
	ReasonCancelling = "Cancelling"
	// ReasonFinalising is a release that has done its steps.
	ReasonFinalising = "Finalising"
	// ReasonCompleted is a release, or a deletion, that is over.
	ReasonCompleted = "Completed"
	// ReasonInTerminating is a deletion that is under way.
	ReasonInTerminating = "InTerminating"
	// ReasonStepTimeout is a step whose Pods are not ready within progressDeadlineSeconds.
	ReasonStepTimeout = "StepTimeout"
	// ReasonAnalysisFailed is a release that is held because an analysis has failed, or could not tell.
	ReasonAnalysisFailed = "AnalysisFailed"
	// ReasonGuardFailed is a release that is held because updated Pods fail more often than old ones.
	ReasonGuardFailed = "GuardFailed"
	// ReasonRejected is a release that is held because its revision was rolled back before.
	ReasonRejected = "Rejected"
	// ReasonThirdVersion is a release of blueGreen style whose workload has got a third template, which no Pods are made of.
	ReasonThirdVersion = "ThirdVersion"
)

// RolloutCondition is a condition of a Rollout or a BatchRelease.
type RolloutCondition struct {
	// type names the condition.
	Type string `json:"type"`
	// status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// lastUpdateTime is when anything of the condition changed last.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`
	// lastTransitionTime is when the status changed last.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// reason is why, in one word.
	// +optional
	Reason string `json:"reason"`
	// message is why, in a sentence.
	// +optional
	Message string `json:"message"`
}
