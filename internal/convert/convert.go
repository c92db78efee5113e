// Package convert turns objects of one API version into another. Nothing that a user or a controller wrote may be lost on the way there and
// back: what the older version has no field for travels in its annotations and labels.
//
// The typed functions (CloneSetToHub, CloneSetFromHub) hold the rules. Handler serves them to the API server; it leaves templates as they
// came, so that fields which this build does not know survive, and so that no template can make a list of objects fail.
package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// Path is where Handler is to be served: CRDs name it as their conversion webhook.
const Path = "/convert"

// Handler answers the API server's requests to convert objects.
func Handler() http.Handler { return http.HandlerFunc(serve) }

func serve(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, fmt.Sprintf("reading the conversion review: %v", err), http.StatusBadRequest)
		return
	}
	if review.Request == nil {
		http.Error(w, "the conversion review holds no request", http.StatusBadRequest)
		return
	}
	review.Response = respond(review.Request)
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	// The status line is out with the first byte: a broken connection can't be reported to anyone.
	_ = json.NewEncoder(w).Encode(&review)
}

// respond converts all objects of a request or, as the API server wants it, none.
func respond(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	objects, err := Objects(request.Objects, request.DesiredAPIVersion)
	if err != nil {
		return &apiextensionsv1.ConversionResponse{
			UID:    request.UID,
			Result: metav1.Status{Status: metav1.StatusFailure, Message: err.Error()},
		}
	}
	return &apiextensionsv1.ConversionResponse{
		UID:              request.UID,
		ConvertedObjects: objects,
		Result:           metav1.Status{Status: metav1.StatusSuccess},
	}
}

// Objects converts raw objects. It returns an error, and never panics, whatever it is given.
func Objects(raw []runtime.RawExtension, apiVersion string) (out []runtime.RawExtension, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("converting to %s: %v", apiVersion, cause)
		}
	}()
	for i := range raw {
		src := &unstructured.Unstructured{}
		if err := src.UnmarshalJSON(raw[i].Raw); err != nil {
			return nil, fmt.Errorf("reading object %d of the request: %w", i, err)
		}
		dst, err := Object(src, apiVersion)
		if err != nil {
			return nil, err
		}
		out = append(out, runtime.RawExtension{Object: dst})
	}
	return out, nil
}

// pair is how the two versions of a kind differ. In the zero pair both spell everything the same.
type pair struct {
	// differ are the fields of spec that the versions spell differently. All others are carried over as they came and never decoded.
	differ []string
	// differInStatus are the fields of status that do.
	differInStatus []string
	toHub, fromHub conversion
}

// conversion turns decoded JSON of one version into that of the other.
type conversion func(src map[string]any) (map[string]any, error)

// pairOf returns how the versions of a kind differ; false for a kind that has no two versions.
func pairOf(kind schema.GroupKind) (pair, bool) {
	switch kind {
	case apps("BroadcastJob"), apps("ImageListPullJob"), apps("ImagePullJob"), apps("StatefulSet"):
		return pair{}, true
	case apps("AdvancedCronJob"):
		return pair{differ: []string{"template"}, toHub: advancedCronJobToHub, fromHub: advancedCronJobFromHub}, true
	case apps("ContainerRecreateRequest"):
		return pair{
			differInStatus: []string{"conditions", "containerStatusSnapshot"},
			toHub:          typed(recreateToHub), fromHub: typed(recreateFromHub),
		}, true
	case apps("CloneSet"):
		return pair{differ: []string{"scaleStrategy", "updateStrategy"}, toHub: typed(CloneSetToHub), fromHub: typed(CloneSetFromHub)}, true
	case apps("DaemonSet"):
		return pair{
			differ: []string{"scaleStrategy", "updateStrategy"}, differInStatus: []string{"updateRevision", "daemonSetHash"},
			toHub: typed(DaemonSetToHub), fromHub: typed(DaemonSetFromHub),
		}, true
	case apps("NodeImage"):
		return pair{differ: []string{"images"}, toHub: typed(NodeImageToHub), fromHub: typed(NodeImageFromHub)}, true
	case apps("PersistentPodState"):
		return pair{
			differ: []string{"requiredPersistentTopology", "preferredPersistentTopology"},
			toHub:  typed(PersistentPodStateToHub), fromHub: typed(PersistentPodStateFromHub),
		}, true
	case apps("ResourceDistribution"):
		return pair{
			differ: []string{"targets"}, differInStatus: []string{"conditions"},
			toHub: typed(ResourceDistributionToHub), fromHub: typed(ResourceDistributionFromHub),
		}, true
	case apps("SidecarSet"):
		return pair{
			differ: []string{"namespace", "namespaceSelector", "customVersion", "strategy", "paused"},
			toHub:  typed(SidecarSetToHub), fromHub: typed(SidecarSetFromHub),
		}, true
	case apps("UnitedDeployment"):
		return pair{
			differInStatus: []string{"subsetReplicas", "subsetStatuses", "updateStatus", "updatedRevision"},
			toHub:          unitedDeploymentToHub, fromHub: unitedDeploymentFromHub,
		}, true
	case apps("WorkloadSpread"):
		return pair{
			differ: []string{"subsets"}, differInStatus: []string{"subsetStatuses", "versionedSubsetStatuses"},
			toHub: typed(WorkloadSpreadToHub), fromHub: typed(WorkloadSpreadFromHub),
		}, true
	case policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget").GroupKind():
		return pair{
			differ: []string{"protectOperations", "protectTotalReplicas", "ignoredPodSelector"},
			toHub:  typed(PodUnavailableBudgetToHub), fromHub: typed(PodUnavailableBudgetFromHub),
		}, true
	}
	return rolloutPair(kind)
}

// rolloutPair is pairOf for the kinds of rollouts.kruise.io.
func rolloutPair(kind schema.GroupKind) (pair, bool) {
	switch kind {
	case rolloutsv1beta1.GroupVersion.WithKind("Rollout").GroupKind():
		return pair{
			differ:         []string{"objectRef", "workloadRef", "strategy", "rolloutID"},
			differInStatus: []string{"canaryStatus", "blueGreenStatus", "currentStepIndex", "currentStepState", "approvals"},
			toHub:          typed(RolloutToHub), fromHub: typed(RolloutFromHub),
		}, true
	case rolloutsv1beta1.GroupVersion.WithKind("BatchRelease").GroupKind():
		return pair{
			differ: []string{"targetReference", "workloadRef", "releasePlan"}, differInStatus: []string{"message"},
			toHub: typed(BatchReleaseToHub), fromHub: typed(BatchReleaseFromHub),
		}, true
	}
	return pair{}, false
}

func apps(kind string) schema.GroupKind { return v1beta1.GroupVersion.WithKind(kind).GroupKind() }

func typed[S, D any](convert func(*S, *D)) conversion {
	return func(src map[string]any) (map[string]any, error) {
		from, to := new(S), new(D)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(src, from); err != nil {
			return nil, err
		}
		convert(from, to)
		return runtime.DefaultUnstructuredConverter.ToUnstructured(to)
	}
}

// Object returns src in another version of its kind; src is not changed, but shares memory with the result. Of the metadata only labels and
// annotations differ: the API server lets a conversion change no more.
func Object(src *unstructured.Unstructured, apiVersion string) (*unstructured.Unstructured, error) {
	from := src.GroupVersionKind()
	to := schema.FromAPIVersionAndKind(apiVersion, from.Kind)
	p, known := pairOf(from.GroupKind())
	const hub, spoke = "v1beta1", "v1alpha1" // in all groups
	switch {
	case known && to.Group == from.Group && from.Version == spoke && to.Version == hub:
		return p.convert(src, to, p.toHub)
	case known && to.Group == from.Group && from.Version == hub && to.Version == spoke:
		return p.convert(src, to, p.fromHub)
	}
	return nil, fmt.Errorf("there is no conversion from %s to %s", from, to)
}

// convert gives the conversion only what the versions spell differently, and puts the result in the place of it.
func (p pair) convert(src *unstructured.Unstructured, to schema.GroupVersionKind, convert conversion) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{Object: maps.Clone(src.Object)}
	out.SetGroupVersionKind(to)
	if convert == nil {
		return out, nil
	}
	labelled := []string{"labels", "annotations"}
	spec, hasSpec := src.Object["spec"].(map[string]any)
	status, hasStatus := src.Object["status"].(map[string]any)
	metadata, _ := src.Object["metadata"].(map[string]any)
	converted, err := convert(map[string]any{
		"metadata": subset(metadata, labelled...),
		"spec":     subset(spec, p.differ...),
		"status":   subset(status, p.differInStatus...),
	})
	if err != nil {
		return nil, fmt.Errorf("converting %s %s/%s to %s: %w", to.Kind, src.GetNamespace(), src.GetName(), to.GroupVersion(), err)
	}
	out.Object["metadata"] = replace(metadata, converted["metadata"], labelled...)
	if hasSpec {
		out.Object["spec"] = replace(spec, converted["spec"], p.differ...)
	}
	if told := replace(status, converted["status"], p.differInStatus...); hasStatus && len(p.differInStatus) > 0 || len(told) > 0 {
		out.Object["status"] = told
	}
	return out, nil
}

// replace returns m with the given fields as they are in converted, or gone where it has none.
func replace(m map[string]any, converted any, fields ...string) map[string]any {
	from, _ := converted.(map[string]any)
	out := maps.Clone(m)
	if out == nil {
		out = map[string]any{}
	}
	maps.DeleteFunc(out, func(key string, _ any) bool { return slices.Contains(fields, key) })
	maps.Copy(out, subset(from, fields...))
	return out
}

func subset(m map[string]any, fields ...string) map[string]any {
	out := map[string]any{}
	for _, field := range fields {
		if value, ok := m[field]; ok {
			out[field] = value
		}
	}
	return out
}
