package pub

// LifecycleStateType is where a Pod stands between its creation and its deletion, as its owner sees it.
// It is the value of the Pod label lifecycle.apps.kruise.io/state.
type LifecycleStateType string

const (
	// LifecycleStatePreparingNormal is the state of a new Pod until its preNormal hook lets it go on.
	LifecycleStatePreparingNormal LifecycleStateType = "PreparingNormal"
	// LifecycleStateNormal is the state of a Pod in service. An absent label means the same.
	LifecycleStateNormal LifecycleStateType = "Normal"
	// LifecycleStatePreparingUpdate is the state of a Pod whose inPlaceUpdate hook still holds it back.
	LifecycleStatePreparingUpdate LifecycleStateType = "PreparingUpdate"
	// LifecycleStateUpdating is the state of a Pod while its containers are exchanged in place.
	LifecycleStateUpdating LifecycleStateType = "Updating"
	// LifecycleStateUpdated is the state of an updated Pod until its inPlaceUpdate hook is back on it.
	LifecycleStateUpdated LifecycleStateType = "Updated"
	// LifecycleStatePreparingDelete is the state of a Pod whose preDelete hook still holds it back.
	LifecycleStatePreparingDelete LifecycleStateType = "PreparingDelete"
)

// Lifecycle lists the hooks at which a Pod waits for its own controller before the workload goes on.
type Lifecycle struct {
	// preDelete holds back the deletion of a Pod by the workload (scaling in, recreating, podsToDelete) for as long as the Pod carries
	// one of the hook's labels or finalizers. A direct kubectl delete or an eviction does not pass through this hook.
	// +optional
	PreDelete *LifecycleHook `json:"preDelete,omitempty"`

	// inPlaceUpdate holds back an in-place update for as long as the Pod carries one of the hook's labels or finalizers, and keeps
	// the updated Pod out of service until it carries all of them again.
	// +optional
	InPlaceUpdate *LifecycleHook `json:"inPlaceUpdate,omitempty"`

	// preNormal keeps a new Pod from counting as available until it carries all of the hook's labels and finalizers.
	// +optional
	PreNormal *LifecycleHook `json:"preNormal,omitempty"`
}

// LifecycleHook says how a Pod shows that it is held: by a label, by a finalizer, or by either.
type LifecycleHook struct {
	// labelsHandler hooks a Pod by labels: a Pod with one of these key and value pairs is held. At most 64.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	LabelsHandler map[string]string `json:"labelsHandler,omitempty"`

	// finalizersHandler hooks a Pod by finalizers: a Pod with one of these finalizers is held. At most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	FinalizersHandler []string `json:"finalizersHandler,omitempty"`

	// markPodNotReady makes the Pod NotReady while it waits in PreparingDelete or PreparingUpdate, so that it gets no new traffic.
	// It has no effect on preNormal. Defaults to false.
	// +optional
	MarkPodNotReady bool `json:"markPodNotReady,omitempty"`
}
