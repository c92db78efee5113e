package v1beta1

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FailureAction is what follows when the new version is found to be bad.
// +kubebuilder:validation:Enum=Pause;Rollback
type FailureAction string

const (
	// FailurePause holds the release until somebody approves the step, jumps to another one, or puts the old template back.
	FailurePause FailureAction = "Pause"
	// FailureRollback leads traffic to the old version, and puts the old template back.
	FailureRollback FailureAction = "Rollback"
)

// GuardAction is what follows when updated Pods fail more often than old ones.
// +kubebuilder:validation:Enum=None;Pause;Rollback
type GuardAction string

const (
	// GuardNone only says so, in status.
	GuardNone GuardAction = "None"
	// GuardPause holds the release until somebody approves the step, jumps to another one, or puts the old template back.
	GuardPause GuardAction = "Pause"
	// GuardRollback leads traffic to the old version, and puts the old template back.
	GuardRollback GuardAction = "Rollback"
)

// DeadlineAction is what follows when the Pods of a step take too long.
// +kubebuilder:validation:Enum=Wait;Rollback
type DeadlineAction string

const (
	// DeadlineWait says so, and goes on once the Pods are ready.
	DeadlineWait DeadlineAction = "Wait"
	// DeadlineRollback leads traffic to the old version, and puts the old template back.
	DeadlineRollback DeadlineAction = "Rollback"
)

// Guard compares the updated Pods of a release with the old ones by what the cluster knows of Pods: exits of containers, readiness, and the
// time to it. It finds at most one of a hundred good releases bad.
type Guard struct {
	// onFailure is what follows when updated Pods fail more often than old ones: Pause, Rollback, or None, which only says so in status.
	// Defaults to Pause.
	// +optional
	// +kubebuilder:default=Pause
	OnFailure GuardAction `json:"onFailure,omitempty"`
	// windowSeconds is how long each updated Pod is watched after its creation or its update in place, and how long before the release old
	// Pods are looked back at. Defaults to 300.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=86400
	WindowSeconds *int32 `json:"windowSeconds,omitempty"`
	// readySeconds is how long an updated Pod may be not ready before it counts as failed. Defaults to three times what the slowest old Pod
	// took to be ready, and at least 30.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	ReadySeconds *int32 `json:"readySeconds,omitempty"`
}

// Analysis measures how the new version does at a step, once its Pods are ready and traffic is led to them.
type Analysis struct {
	// checks are what is measured, all at the same time. The step goes on when all have succeeded; the first that fails ends the analysis.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	Checks []Check `json:"checks"`
	// onFailure is what follows when a check has failed: Pause or Rollback. A check that could not tell always pauses. Defaults to Pause.
	// +optional
	// +kubebuilder:default=Pause
	OnFailure FailureAction `json:"onFailure,omitempty"`
}

// Check is something that is measured again and again.
//
// +kubebuilder:validation:XValidation:rule="(has(self.prometheus) ? 1 : 0) + (has(self.http) ? 1 : 0) + (has(self.job) ? 1 : 0) == 1",message="exactly one of prometheus, http and job is needed"
// +kubebuilder:validation:XValidation:rule="!has(self.failureLimit) || self.failureLimit < self.?count.orValue(1)",message="must be less than count: the check could not fail",fieldPath=".failureLimit"
type Check struct {
	// name names the check in status, and its Jobs.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// initialDelaySeconds is how long the first measurement waits after the analysis began. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty"`
	// intervalSeconds is the time from the beginning of one measurement to that of the next one, which does not begin before the first has
	// ended. Defaults to 60.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	IntervalSeconds *int32 `json:"intervalSeconds,omitempty"`
	// count is how many measurements must have told whether the version is good for the check to end. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Count *int32 `json:"count,omitempty"`
	// failureLimit is how many measurements may fail: one more, and the check has failed. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	FailureLimit int32 `json:"failureLimit,omitempty"`
	// inconclusiveLimit is how many measurements may tell nothing, because of an error, a timeout or missing data: one more, and the check
	// is inconclusive, which pauses the release. They are made again and not counted otherwise. Defaults to 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	InconclusiveLimit *int32 `json:"inconclusiveLimit,omitempty"`
	// timeoutSeconds is how long one measurement may take. Defaults to 10, and to 600 for a Job.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// prometheus asks a server that speaks the API of Prometheus for a number.
	// +optional
	Prometheus *PrometheusCheck `json:"prometheus,omitempty"`
	// http sends a request, and looks at the answer.
	// +optional
	HTTP *HTTPCheck `json:"http,omitempty"`
	// job runs a Job, which succeeds or fails.
	// +optional
	Job *JobCheck `json:"job,omitempty"`
}

// Comparison is an operator and a number, such as "< 0.01".
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^(<|<=|>|>=|==|!=) ?-?[0-9]+(\.[0-9]+)?$`
type Comparison string

// PrometheusCheck asks for a number.
type PrometheusCheck struct {
	// address is where the server is, such as http://prometheus.monitoring:9090, with the path before /api/v1 if there is one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[^/?#@\s]+(/[^?#\s]*)?$`
	Address string `json:"address"`
	// query is the PromQL query. Its result must be one number: a scalar, or a vector of one element. No element and NaN tell nothing.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`
	// success is what the number must be for the measurement to succeed, such as "< 0.01".
	Success Comparison `json:"success"`
	// failure is what the number must be for the measurement to fail; what is neither tells nothing. Defaults to all that is no success.
	// +optional
	Failure Comparison `json:"failure,omitempty"`
	// access is how the server is reached.
	// +optional
	Access Access `json:"access,omitempty"`
}

// HTTPMethod is the method of a request.
// +kubebuilder:validation:Enum=GET;HEAD;POST
type HTTPMethod string

// HTTPCheck sends a request from the managers of Rollouts. Redirections are not followed.
//
// +kubebuilder:validation:XValidation:rule="has(self.url) != has(self.service)",message="exactly one of url and service is needed"
// +kubebuilder:validation:XValidation:rule="!has(self.json) || !has(self.method) || self.method != 'HEAD'",message="the answer to HEAD has no body: use GET",fieldPath=".json"
type HTTPCheck struct {
	// url is where the request goes, such as https://probe.example.com/health.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^/?#@\s]+(/[^#\s]*)?$`
	URL string `json:"url,omitempty"`
	// service is a Service in the namespace of the Rollout that the request goes to, instead of url.
	// +optional
	Service *ServiceTarget `json:"service,omitempty"`
	// method is GET, HEAD or POST, without a body. Defaults to GET.
	// +optional
	// +kubebuilder:default=GET
	Method HTTPMethod `json:"method,omitempty"`
	// headers are sent with the request. They are no place for credentials, which access.secretName names.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(h, !(h.name.lowerAscii() in ['host', 'authorization', 'content-length', 'transfer-encoding', 'connection']))",message="host, authorization and those of the connection can't be set"
	Headers []RequestHeader `json:"headers,omitempty"`
	// status are the status codes of an answer that succeeds. Any other one fails, but 429 and those from 502 to 504, which tell nothing
	// unless they are listed. Defaults to 200 to 299.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=100
	// +kubebuilder:validation:items:Maximum=599
	Status []int32 `json:"status,omitempty"`
	// json looks into the body of an answer that has succeeded by its status.
	// +optional
	JSON *JSONRule `json:"json,omitempty"`
	// access is how the server is reached.
	// +optional
	Access Access `json:"access,omitempty"`
}

// RequestHeader is a header of a request.
type RequestHeader struct {
	// name is the name of the header.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	Name string `json:"name"`
	// value is its value.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[ -~]*$`
	Value string `json:"value"`
}

// ServiceTarget is a Service in the namespace of the Rollout.
type ServiceTarget struct {
	// name is the name of the Service. That of the new version has the suffix -canary while it gets traffic.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// port is the number of its port. Defaults to 80.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// path is what is asked for, with its query. Defaults to /.
	// +optional
	// +kubebuilder:default="/"
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/[^#\s]*$`
	Path string `json:"path,omitempty"`
	// scheme is http or https. Defaults to http.
	// +optional
	// +kubebuilder:default=http
	// +kubebuilder:validation:Enum=http;https
	Scheme string `json:"scheme,omitempty"`
}

// JSONRule judges a value in a JSON body. A body without the value tells nothing.
//
// +kubebuilder:validation:XValidation:rule="has(self.success) != has(self.equals)",message="exactly one of success and equals is needed"
// +kubebuilder:validation:XValidation:rule="!has(self.failure) || has(self.success)",message="is for numbers, beside success",fieldPath=".failure"
type JSONRule struct {
	// field leads to the value: names of members and numbers of elements, counted from 0, with dots between them, such as data.0.rate.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Field string `json:"field"`
	// success is what a number must be for the measurement to succeed, such as "< 0.01".
	// +optional
	Success Comparison `json:"success,omitempty"`
	// failure is what a number must be for the measurement to fail; what is neither tells nothing. Defaults to all that is no success.
	// +optional
	Failure Comparison `json:"failure,omitempty"`
	// equals is the text, number or boolean that the value must be for the measurement to succeed; with any other it fails.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Equals string `json:"equals,omitempty"`
}

// Access is how a server is reached.
type Access struct {
	// secretName is a Secret of type rollouts.kruise.io/credentials in the namespace of the Rollout. Its key origin says which server it is
	// for, such as https://prometheus.example.com, and it is sent to no other; token is sent as a bearer token, or username and password.
	// The managers may read it only where an administrator lets them. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
	// caBundle holds the PEM certificates that an https server is trusted by. Defaults to those of the managers' system.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	CABundle []byte `json:"caBundle,omitempty"`
}

// JobCheck runs a Job for each measurement. The measurement succeeds if the Job completes, and fails if it fails; a Job that takes longer
// than the timeout tells nothing.
type JobCheck struct {
	// template is what the Jobs are made of. Each belongs to the Rollout, and is deleted an hour after its end unless it says otherwise. Who
	// writes it needs the right to create Jobs in the namespace.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Template batchv1.JobTemplateSpec `json:"template"`
}

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
