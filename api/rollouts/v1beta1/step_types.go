package v1beta1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Step is one step of a release.
type Step struct {
	// replicas is how many Pods run the new version at the end of the step, those of earlier steps included: a number, or a percentage of
	// the workload's replicas, rounded up. It may not be less than that of the step before if both are numbers or both are percentages.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^(100|[1-9][0-9]?)%$`
	Replicas *intstr.IntOrString `json:"replicas,omitempty"`
	// traffic is the share of requests that goes to the new version, such as "20%". Only blueGreen takes "0%". Defaults to none: traffic
	// then is not touched, and follows the Pods.
	// +optional
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^(100|[1-9]?[0-9])%$`
	Traffic *string `json:"traffic,omitempty"`
	// matches are the requests that go to the new version: those that at least one item matches. If both are given, traffic is ignored.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	Matches []HTTPRouteMatch `json:"matches,omitempty"`
	// requestHeaderModifier changes the headers of requests on their way to the new version. Defaults to none.
	// +optional
	RequestHeaderModifier *HTTPHeaderFilter `json:"requestHeaderModifier,omitempty"`
	// pause is what the step waits for at its end. Defaults to an approval.
	// +optional
	Pause StepPause `json:"pause,omitempty"`
	// analysis measures how the new version does before the step pauses. A change begins it anew, unless it has succeeded. Defaults to
	// none.
	// +optional
	Analysis *Analysis `json:"analysis,omitempty"`
	// podMetadata is what the Pods that the step updates have beside the labels and annotations of their template, until the release is
	// over. For partition style only. Defaults to nothing.
	// +optional
	PodMetadata *PodMetadata `json:"podMetadata,omitempty"`
}

// PodMetadata is what Pods have beside the labels and annotations of their template.
//
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || self.labels.all(k, !k.startsWith('rollouts.kruise.io/') && !(k in ['controller-revision-hash', 'pod-template-hash']))",message="may not be labels that controllers write: rollouts.kruise.io/, controller-revision-hash, pod-template-hash",fieldPath=".labels",reason="FieldValueForbidden"
// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || self.annotations.all(k, !k.startsWith('rollouts.kruise.io/'))",message="may not be annotations that controllers write: rollouts.kruise.io/",fieldPath=".annotations",reason="FieldValueForbidden"
type PodMetadata struct {
	// labels are added, or replace those of the same keys. The selector of the workload may not go by them.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are added, or replace those of the same keys.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Annotations map[string]string `json:"annotations,omitempty"`
}

// StepPause is what a step waits for at its end.
type StepPause struct {
	// duration is the time that the step waits, in seconds; 0 goes on at once. Defaults to no time: the step waits for its approval.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Duration *int32 `json:"duration,omitempty"`
}

// HTTPRouteMatch matches requests for which all that it names is true.
//
// +kubebuilder:validation:XValidation:rule="has(self.headers) && size(self.headers) > 0 || has(self.path) || has(self.queryParams) && size(self.queryParams) > 0",message="needs headers, path or queryParams: an empty match is every request"
type HTTPRouteMatch struct {
	// headers are the headers that a request must have.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Headers []HTTPHeaderMatch `json:"headers,omitempty"`
	// path is the path that a request must have. For Gateway API and Istio only.
	// +optional
	Path *HTTPPathMatch `json:"path,omitempty"`
	// queryParams are the parameters that the query of a request must have. For Gateway API, Istio and Ingresses of class mse only.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	QueryParams []HTTPQueryParamMatch `json:"queryParams,omitempty"`
}

// MatchType is how a value is compared.
// +kubebuilder:validation:Enum=Exact;RegularExpression
type MatchType string

const (
	// MatchExact is true for the value itself.
	MatchExact MatchType = "Exact"
	// MatchRegularExpression is true for every value that the regular expression matches.
	MatchRegularExpression MatchType = "RegularExpression"
)

// PathMatchType is how a path is compared.
// +kubebuilder:validation:Enum=Exact;PathPrefix;RegularExpression
type PathMatchType string

const (
	// PathMatchExact is true for the path itself.
	PathMatchExact PathMatchType = "Exact"
	// PathMatchPrefix is true for the path, and for all below it.
	PathMatchPrefix PathMatchType = "PathPrefix"
	// PathMatchRegularExpression is true for every path that the regular expression matches.
	PathMatchRegularExpression PathMatchType = "RegularExpression"
)

// HTTPHeaderMatch matches requests by a header. It is written as in Gateway API.
type HTTPHeaderMatch struct {
	// type is how the value is compared. Defaults to Exact.
	// +optional
	// +kubebuilder:default=Exact
	Type *MatchType `json:"type,omitempty"`
	// name is the name of the header; upper and lower case are the same.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// value is the value of the header, or the regular expression that it must match.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value"`
}

// HTTPQueryParamMatch matches requests by a parameter of their query. It is written as in Gateway API.
type HTTPQueryParamMatch struct {
	// type is how the value is compared. Defaults to Exact.
	// +optional
	// +kubebuilder:default=Exact
	Type *MatchType `json:"type,omitempty"`
	// name is the name of the parameter.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// value is the value of the parameter, or the regular expression that it must match.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}

// HTTPPathMatch matches requests by their path. It is written as in Gateway API.
type HTTPPathMatch struct {
	// type is how the value is compared. Defaults to PathPrefix.
	// +optional
	// +kubebuilder:default=PathPrefix
	Type *PathMatchType `json:"type,omitempty"`
	// value is the path, or the regular expression that it must match. Defaults to /.
	// +optional
	// +kubebuilder:default="/"
	// +kubebuilder:validation:MaxLength=1024
	Value *string `json:"value,omitempty"`
}

// HTTPHeader is a header with its value.
type HTTPHeader struct {
	// name is the name of the header; upper and lower case are the same.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// value is the value of the header.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value"`
}

// HTTPHeaderFilter changes the headers of a request. It is written as in Gateway API.
type HTTPHeaderFilter struct {
	// set replaces the values of headers.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Set []HTTPHeader `json:"set,omitempty"`
	// add adds values to headers.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Add []HTTPHeader `json:"add,omitempty"`
	// remove takes headers away.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	Remove []string `json:"remove,omitempty"`
}

// TrafficRoutingRef is a Service of the workload, and what leads traffic to it. All that is given is driven together.
//
// +kubebuilder:validation:XValidation:rule="has(self.ingress) || has(self.gateway) || has(self.customNetworkRefs) && size(self.customNetworkRefs) > 0",message="needs ingress, gateway or customNetworkRefs"
type TrafficRoutingRef struct {
	// service is the name of the Service that selects the Pods of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Service string `json:"service"`
	// gracePeriodSeconds is the time that the data plane is given to follow after each change. Defaults to 3; 0 does not wait.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`
	// ingress is an Ingress that leads to the Service.
	// +optional
	Ingress *IngressTrafficRouting `json:"ingress,omitempty"`
	// gateway is a route of Gateway API that leads to the Service.
	// +optional
	Gateway *GatewayTrafficRouting `json:"gateway,omitempty"`
	// customNetworkRefs are other objects that lead to the Service.
	// +optional
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	CustomNetworkRefs []ObjectRef `json:"customNetworkRefs,omitempty"`
}

// IngressTrafficRouting is an Ingress.
type IngressTrafficRouting struct {
	// classType is the dialect of annotations that the Ingress controller reads: nginx, higress, aliyun-alb, mse, or one that a script of
	// the configuration speaks. Defaults to nginx.
	// +optional
	// +kubebuilder:default=nginx
	// +kubebuilder:validation:MaxLength=63
	ClassType string `json:"classType,omitempty"`
	// name is the name of the Ingress.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// GatewayTrafficRouting is a route of Gateway API.
type GatewayTrafficRouting struct {
	// httpRouteName is the name of the HTTPRoute.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	HTTPRouteName *string `json:"httpRouteName,omitempty"`
}

// ObjectRef names an object in the namespace of the Rollout.
type ObjectRef struct {
	// apiVersion is the group and version of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`
	// kind is the kind of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name is the name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}
