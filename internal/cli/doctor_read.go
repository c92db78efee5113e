package cli

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/cli/doctor"
	"github.com/seed-69ecc383/kruise/internal/cli/lint"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
)

// part is where the objects of a manager are.
type part struct {
	doctor.Part
	lease, configurations string
	// probe is what its webhooks are asked about.
	probe string
}

// parts are the two managers.
func parts() []part {
	return []part{
		{
			Part:  doctor.Part{Name: "kruise-controller-manager", Namespace: "kruise-system"},
			lease: "kruise-manager", configurations: "kruise-",
			probe: `{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","metadata":{"name":"kruise-doctor"},"spec":{"replicas":0,` +
				`"selector":{"matchLabels":{"kruise-doctor":"probe"}},"template":{"metadata":{"labels":{"kruise-doctor":"probe"}},` +
				`"spec":{"containers":[{"name":"probe","image":"probe"}]}}}}`,
		},
		{
			Part:  doctor.Part{Name: "kruise-rollout-manager", Namespace: "kruise-rollout"},
			lease: "kruise-rollout", configurations: "kruise-rollout-",
			probe: `{"apiVersion":"rollouts.kruise.io/v1beta1","kind":"Rollout","metadata":{"name":"kruise-doctor"},"spec":` +
				`{"workloadRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"kruise-doctor"},` +
				`"strategy":{"canary":{"steps":[{"replicas":1}]}}}}`,
		},
	}
}

// reading reads facts. What it may not read, or can't, it notes, and goes on.
type reading struct {
	ctx    context.Context
	client client.Client
	facts  *doctor.Facts
}

// read reports whether something was read.
func (r *reading) read(what string, err error) bool {
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		r.facts.Unread = append(r.facts.Unread, fmt.Sprintf("%s could not be read: %v", what, err))
	}
	return err == nil
}

func (r *reading) list(what string, into client.ObjectList, options ...client.ListOption) bool {
	return r.read(what, r.client.List(r.ctx, into, options...))
}

// facts reads what an installation is judged by; with takeover also what one of OpenKruise has left.
func (p *program) facts(ctx context.Context, takeover bool) (doctor.Facts, error) {
	facts := doctor.Facts{Now: p.now()}
	c, err := p.cluster.Client()
	if err != nil {
		return facts, err
	}
	if facts.Server, facts.Minor, err = p.cluster.ServerVersion(); err != nil {
		return facts, err
	}
	shipped, err := lint.AllShipped()
	if err != nil {
		return facts, err
	}
	r := &reading{ctx: ctx, client: c, facts: &facts}
	stored := r.definitions()
	for _, one := range parts() {
		r.managers(&one)
		one.Definitions = definitionsOf(one, shipped, stored)
		r.webhooks(&one)
		if !takeover && len(one.Webhooks) > 0 {
			namespace, err := p.cluster.Namespace()
			if err != nil {
				return facts, err
			}
			r.ask(&one, namespace)
		}
		facts.Parts = append(facts.Parts, one.Part)
	}
	r.daemons()
	r.held()
	if takeover {
		r.older(shipped)
	}
	return facts, nil
}

// definitions returns the CustomResourceDefinitions of the cluster by name.
func (r *reading) definitions() map[string]*unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	out := map[string]*unstructured.Unstructured{}
	if r.list("CustomResourceDefinitions", list) {
		for i := range list.Items {
			out[list.Items[i].GetName()] = &list.Items[i]
		}
	}
	return out
}

// definitionsOf returns the definitions of a part, those that are missing as well.
func definitionsOf(of part, shipped []lint.Shipped, there map[string]*unstructured.Unstructured) []doctor.Definition {
	var out []doctor.Definition
	for _, s := range shipped {
		if isOfRollouts := s.Group == rolloutsv1beta1.GroupVersion.Group; isOfRollouts != (of.lease == "kruise-rollout") {
			continue
		}
		d := doctor.Definition{Name: s.Name, Ours: s.Versions, Converts: s.Converts}
		if crd := there[s.Name]; crd != nil {
			d.There = true
			d.Stored, _, _ = unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
			versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
			for _, v := range versions {
				fields, _ := v.(map[string]any)
				name, _ := fields["name"].(string)
				if fields["served"] == true {
					d.Served = append(d.Served, name)
				}
				if fields["storage"] == true {
					d.Storage = name
				}
			}
			bundle, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
			d.Bundle, _ = base64.StdEncoding.DecodeString(bundle) // what is no bundle is reported as none
		}
		out = append(out, d)
	}
	return out
}

// managers reads the Deployment and the Lease of a part.
func (r *reading) managers(of *part) {
	var deployment appsv1.Deployment
	key := client.ObjectKey{Namespace: of.Namespace, Name: of.Name}
	if r.read("Deployment "+of.Name, r.client.Get(r.ctx, key, &deployment)) {
		of.Deployed, of.Wanted, of.Ready = true, 1, deployment.Status.ReadyReplicas
		if deployment.Spec.Replicas != nil {
			of.Wanted = *deployment.Spec.Replicas
		}
		if containers := deployment.Spec.Template.Spec.Containers; len(containers) > 0 {
			of.Image = containers[0].Image
		}
	}
	var lease coordinationv1.Lease
	key.Name = of.lease
	if r.read("Lease "+of.lease, r.client.Get(r.ctx, key, &lease)) {
		of.Lease = &doctor.Lease{Name: lease.Name}
		if lease.Spec.HolderIdentity != nil {
			of.Lease.Holder = *lease.Spec.HolderIdentity
		}
		if lease.Spec.RenewTime != nil {
			of.Lease.Renewed = lease.Spec.RenewTime.Time
		}
		if lease.Spec.LeaseDurationSeconds != nil {
			of.Lease.Duration = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
		}
	}
}

// webhooks reads the webhook configurations of a part.
func (r *reading) webhooks(of *part) {
	names := []string{of.configurations + "mutating-webhook-configuration", of.configurations + "validating-webhook-configuration"}
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	if r.read(names[0], r.client.Get(r.ctx, client.ObjectKey{Name: names[0]}, &mutating)) {
		for _, w := range mutating.Webhooks {
			of.Webhooks = append(of.Webhooks, doctor.Webhook{Configuration: names[0], Name: w.Name, Bundle: w.ClientConfig.CABundle})
		}
	}
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	if r.read(names[1], r.client.Get(r.ctx, client.ObjectKey{Name: names[1]}, &validating)) {
		for _, w := range validating.Webhooks {
			of.Webhooks = append(of.Webhooks, doctor.Webhook{Configuration: names[1], Name: w.Name, Bundle: w.ClientConfig.CABundle})
		}
	}
}

// ask has the API server ask the webhooks of a part about an object, which is not stored.
func (r *reading) ask(of *part, namespace string) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(of.probe)); err != nil {
		r.read("the probe of "+of.Name, err)
		return
	}
	o.SetNamespace(namespace)
	err := r.client.Create(r.ctx, o, client.DryRunAll)
	switch {
	case meta.IsNoMatchError(err): // its kinds are missing, which is said already
	case err == nil, apierrors.IsInvalid(err), apierrors.IsAlreadyExists(err), strings.Contains(err.Error(), "denied the request"):
		of.Asked = true
	case apierrors.IsForbidden(err):
		r.read("whether the webhooks of "+of.Name+" answer", err)
	default:
		of.Asked, of.Answer = true, err.Error()
	}
}

// daemons reads which nodes have a daemon.
func (r *reading) daemons() {
	var set appsv1.DaemonSet
	if !r.read("DaemonSet kruise-daemon", r.client.Get(r.ctx, client.ObjectKey{Namespace: "kruise-system", Name: "kruise-daemon"}, &set)) {
		return
	}
	r.facts.Daemon = true
	var pods corev1.PodList
	if r.list("the Pods of daemons", &pods, client.InNamespace("kruise-system"), client.MatchingLabels(set.Spec.Selector.MatchLabels)) {
		for i := range pods.Items {
			r.facts.Nodes = append(r.facts.Nodes, pods.Items[i].Spec.NodeName)
			if pod.IsReady(&pods.Items[i]) {
				r.facts.Daemons = append(r.facts.Daemons, pods.Items[i].Spec.NodeName)
			}
		}
		slices.Sort(r.facts.Nodes)
	}
}

// metadata lists the metadata of the objects of a kind.
func (r *reading) metadata(kind schema.GroupVersionKind, options ...client.ListOption) []metav1.PartialObjectMetadata {
	list := &metav1.PartialObjectMetadataList{}
	kind.Kind += "List"
	list.SetGroupVersionKind(kind)
	r.list("objects of kind "+strings.TrimSuffix(kind.Kind, "List"), list, options...)
	return list.Items
}
