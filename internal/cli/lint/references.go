package lint

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	policyv1beta1 "github.com/seed-69ecc383/kruise/api/policy/v1beta1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/convert"
)

// references warns of what an object and others among the manifests say that does not fit together.
func (c *check) references(all files) {
	gvk := c.Object.GroupVersionKind()
	switch gvk.GroupKind() {
	case rolloutsv1beta1.GroupVersion.WithKind("Rollout").GroupKind():
		var r rolloutsv1beta1.Rollout
		if c.hub(rolloutsv1beta1.GroupVersion, &r) {
			c.rollout(all, &r)
		}
	case rolloutsv1beta1.GroupVersion.WithKind("TrafficRouting").GroupKind():
		c.trafficRouting(all)
	case policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget").GroupKind():
		var b policyv1beta1.PodUnavailableBudget
		if c.hub(policyv1beta1.GroupVersion, &b) {
			c.budget(all, &b)
		}
	}
	if gvk.Group == v1beta1.GroupVersion.Group && (gvk.Kind == "CloneSet" || gvk.Kind == "StatefulSet" || gvk.Kind == "DaemonSet") {
		c.partition()
	}
}

// hub decodes the object in the hub version; false if it can't be, which the API server says better.
func (c *check) hub(version schema.GroupVersion, into any) bool {
	o := c.Object
	if o.GroupVersionKind().GroupVersion() != version {
		converted, err := convert.Object(o, version.String())
		if err != nil {
			return false
		}
		o = converted
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into) == nil
}

// named returns the object of the manifests that is named, in the namespace of the one that is checked; it warns if there is none.
func (c *check) named(all files, field string, kind schema.GroupKind, name string) *unstructured.Unstructured {
	for _, o := range all.objects {
		if o.GroupVersionKind().GroupKind() == kind && o.GetName() == name && o.GetNamespace() == c.Object.GetNamespace() {
			return o
		}
	}
	c.warnf(field, "%s %s is not among these files: in a cluster without it, this does nothing", kind.Kind, name)
	return nil
}

func (c *check) rollout(all files, r *rolloutsv1beta1.Rollout) {
	at := "spec.workloadRef"
	if c.Object.GroupVersionKind().Version != rolloutsv1beta1.GroupVersion.Version {
		at = "spec.objectRef.workloadRef"
	}
	of := r.Spec.WorkloadRef
	workload := c.named(all, at, schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupKind(), of.Name)
	strategy := r.Spec.Strategy
	if strategy.Canary != nil {
		c.routes(all, "spec.strategy.canary.trafficRoutings", strategy.Canary.TrafficRoutings, workload)
	}
	if strategy.BlueGreen != nil {
		c.routes(all, "spec.strategy.blueGreen.trafficRoutings", strategy.BlueGreen.TrafficRoutings, workload)
	}
}

// routes warns of Services, Ingresses and routes that are not there, and of Services that do not select the Pods of the workload.
func (c *check) routes(all files, at string, routes []rolloutsv1beta1.TrafficRoutingRef, workload *unstructured.Unstructured) {
	for i, route := range routes {
		field := fmt.Sprintf("%s[%d]", at, i)
		service := c.named(all, field+".service", schema.GroupKind{Kind: "Service"}, route.Service)
		if service != nil && workload != nil {
			selected, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
			if template, ok := templateLabels(workload); ok && !labels.SelectorFromSet(selected).Matches(template) {
				c.warnf(field+".service", "Service %s selects %s, which Pods of %s %s do not have", route.Service,
					labels.FormatLabels(selected), workload.GetKind(), workload.GetName())
			}
		}
		if route.Ingress != nil {
			c.named(all, field+".ingress.name", schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}, route.Ingress.Name)
		}
		if route.Gateway != nil && route.Gateway.HTTPRouteName != nil {
			kind := schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}
			c.named(all, field+".gateway.httpRouteName", kind, *route.Gateway.HTTPRouteName)
		}
		for j, ref := range route.CustomNetworkRefs {
			of := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
			c.named(all, fmt.Sprintf("%s.customNetworkRefs[%d]", field, j), of, ref.Name)
		}
	}
}

// trafficRouting does the same for the routes of an object of their own.
func (c *check) trafficRouting(all files) {
	var spec struct {
		Spec struct {
			ObjectRef []rolloutsv1beta1.TrafficRoutingRef `json:"objectRef"`
		} `json:"spec"`
	}
	if decode(c.Object.Object, &spec) == nil {
		c.routes(all, "spec.objectRef", spec.Spec.ObjectRef, nil)
	}
}

// templateLabels returns the labels of the Pods of a workload.
func templateLabels(workload *unstructured.Unstructured) (labels.Set, bool) {
	found, ok, err := unstructured.NestedStringMap(workload.Object, "spec", "template", "metadata", "labels")
	return found, ok && err == nil
}

// budget warns of a PodUnavailableBudget that guards nothing, or the same Pods as another one.
func (c *check) budget(all files, b *policyv1beta1.PodUnavailableBudget) {
	if to := b.Spec.TargetReference; to != nil {
		c.named(all, "spec.targetRef", schema.FromAPIVersionAndKind(to.APIVersion, to.Kind).GroupKind(), to.Name)
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil || selector.Empty() {
		return // the API server refuses it
	}
	for _, o := range all.objects {
		template, has := templateLabels(o)
		if o.GetKind() == "Pod" {
			template, has = o.GetLabels(), true
		}
		if has && o.GetNamespace() == b.Namespace && selector.Matches(template) {
			return
		}
	}
	c.warnf("spec.selector", "%s selects no Pods of these files: in a cluster without others, it guards nothing", selector)
}

// partition warns of a partition that keeps all Pods at the old template.
func (c *check) partition() {
	path := []string{"spec", "updateStrategy", "rollingUpdate", "partition"}
	value, there, err := unstructured.NestedFieldNoCopy(c.Object.Object, path...)
	if err != nil || !there {
		return
	}
	replicas, counted, err := unstructured.NestedInt64(c.Object.Object, "spec", "replicas")
	if err != nil {
		return
	}
	if !counted {
		replicas = 1
	}
	field := strings.Join(path, ".")
	switch p := value.(type) {
	case string:
		if parsed := intstr.Parse(p); parsed.Type == intstr.String && p == "100%" {
			c.warnf(field, "100%% keeps all Pods at the old template: lower it when an update is to begin")
		}
	case int64:
		if c.Object.GetKind() != "DaemonSet" && p > 0 && p >= replicas {
			c.warnf(field, "%d keeps all %d Pods at the old template: lower it when an update is to begin", p, replicas)
		}
	}
}
