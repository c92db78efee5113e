package distribution

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of objects that can be distributed.
type Kind struct {
	schema.GroupVersionKind
	// Resource is its name in requests.
	Resource string
	// IsFurther means that it takes rights that not every manager has, so that it is only distributed where it is listed.
	IsFurther bool
	empty     func() Object
}

// Kinds returns all of them. Not among them are Roles and RoleBindings, for which the manager would need every right that they grant, and
// ResourceQuotas, which would have to be read anew at each change of their status, at each Pod.
func Kinds() []Kind {
	core, network := corev1.SchemeGroupVersion, networkingv1.SchemeGroupVersion
	return []Kind{
		{core.WithKind("Secret"), "secrets", false, func() Object { return &corev1.Secret{} }},
		{core.WithKind("ConfigMap"), "configmaps", false, func() Object { return &corev1.ConfigMap{} }},
		{core.WithKind("ServiceAccount"), "serviceaccounts", true, func() Object { return &corev1.ServiceAccount{} }},
		{core.WithKind("LimitRange"), "limitranges", true, func() Object { return &corev1.LimitRange{} }},
		{network.WithKind("NetworkPolicy"), "networkpolicies", true, func() Object { return &networkingv1.NetworkPolicy{} }},
	}
}

// Find returns a kind by its name; false if it can't be distributed.
func Find(name string) (Kind, bool) {
	all := Kinds()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Kind == name })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// Served returns the kinds that a manager distributes that lists these further ones, and an error for a name that is none of them.
func Served(further []string) ([]Kind, error) {
	var out []Kind
	var names []string
	for _, kind := range Kinds() {
		if kind.IsFurther {
			names = append(names, kind.Kind)
		}
		if !kind.IsFurther || slices.Contains(further, kind.Kind) {
			out = append(out, kind)
		}
	}
	for _, name := range further {
		if !slices.Contains(names, name) {
			return out, fmt.Errorf("%q is none of %s", name, strings.Join(names, ", "))
		}
	}
	return out, nil
}

// Unserved says that a manager does not distribute a kind, and what would have it do so.
func Unserved(kind string) string {
	return fmt.Sprintf("kind %s is not distributed here: list it in --resourcedistribution-kinds of the managers, "+
		"and grant them the rights in config/resourcedistribution/kinds", kind)
}

// New returns an empty object of a kind; nil if it is none that can be distributed.
func New(name string) Object {
	kind, ok := Find(name)
	if !ok {
		return nil
	}
	return kind.empty()
}

// KindOf returns the name of the kind of an object.
func KindOf(object Object) string {
	switch object.(type) {
	case *corev1.Secret:
		return "Secret"
	case *corev1.ServiceAccount:
		return "ServiceAccount"
	case *corev1.LimitRange:
		return "LimitRange"
	case *networkingv1.NetworkPolicy:
		return "NetworkPolicy"
	}
	return "ConfigMap"
}

// complete writes into an object what the API server would: it folds stringData into data, and sets defaults. What belongs to one namespace
// is left out. So a copy can be compared with what is stored.
func complete(object Object) {
	switch o := object.(type) {
	case *corev1.Secret:
		for key, value := range o.StringData {
			if o.Data == nil {
				o.Data = map[string][]byte{}
			}
			o.Data[key] = []byte(value)
		}
		o.StringData = nil
		if o.Type == "" {
			o.Type = corev1.SecretTypeOpaque
		}
	case *corev1.ServiceAccount:
		o.Secrets = nil // tokens of the one account
	case *corev1.LimitRange:
		for i := range o.Spec.Limits {
			completeLimit(&o.Spec.Limits[i])
		}
	case *networkingv1.NetworkPolicy:
		completePolicy(&o.Spec)
	}
}

// completeLimit sets the defaults of a limit for containers: what they get is the most that they may have, and what is requested is that,
// or else the least that they may have.
func completeLimit(limit *corev1.LimitRangeItem) {
	if limit.Type != corev1.LimitTypeContainer {
		return
	}
	fill := func(into *corev1.ResourceList, from corev1.ResourceList) {
		for name, quantity := range from {
			if *into == nil {
				*into = corev1.ResourceList{}
			}
			if _, set := (*into)[name]; !set {
				(*into)[name] = quantity.DeepCopy()
			}
		}
	}
	fill(&limit.Default, limit.Max)
	fill(&limit.DefaultRequest, limit.Default)
	fill(&limit.DefaultRequest, limit.Min)
}

// completePolicy sets the defaults of a NetworkPolicy: ports of TCP, and the directions that it has rules for, with Ingress always among
// them.
func completePolicy(spec *networkingv1.NetworkPolicySpec) {
	var ports []*networkingv1.NetworkPolicyPort
	for i := range spec.Ingress {
		for j := range spec.Ingress[i].Ports {
			ports = append(ports, &spec.Ingress[i].Ports[j])
		}
	}
	for i := range spec.Egress {
		for j := range spec.Egress[i].Ports {
			ports = append(ports, &spec.Egress[i].Ports[j])
		}
	}
	for _, port := range ports {
		if port.Protocol == nil {
			port.Protocol = new(corev1.ProtocolTCP)
		}
	}
	if len(spec.PolicyTypes) == 0 {
		spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(spec.Egress) > 0 {
			spec.PolicyTypes = append(spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
}

// keep writes into a copy what the object in its place has and no copy says.
func keep(copied, was Object) {
	if account, ok := copied.(*corev1.ServiceAccount); ok {
		account.Secrets = was.(*corev1.ServiceAccount).Secrets
	}
}

// rename gives a copy the name, labels and annotations that the copies are to have besides those of the resource.
func rename(copied Object, name string, labels, annotations map[string]string) {
	if name != "" {
		copied.SetName(name)
	}
	copied.SetLabels(merged(copied.GetLabels(), labels))
	copied.SetAnnotations(merged(copied.GetAnnotations(), annotations))
}

func merged(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	out := map[string]string{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}
