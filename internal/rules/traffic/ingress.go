package traffic

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// cookieHeader is the name of a header match that stands for a cookie.
const cookieHeader = "canary-by-cookie"

// CanaryIngress returns the Ingress that leads requests to the new version beside the user's own: its rules for the stable Service, with
// the annotations that the class reads. The user's Ingress is not changed.
func CanaryIngress(stable *networkingv1.Ingress, class string, s Split) (*networkingv1.Ingress, error) {
	out, err := CanaryRules(stable, s)
	if err != nil {
		return nil, err
	}
	out.Annotations, err = IngressAnnotations(stable.Annotations, class, s)
	return out, err
}

// CanaryRules returns that Ingress without annotations.
func CanaryRules(stable *networkingv1.Ingress, s Split) (*networkingv1.Ingress, error) {
	out := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
		Name: CanaryName(stable.Name), Namespace: stable.Namespace, Labels: maps.Clone(stable.Labels),
	}}
	stable.Spec.DeepCopyInto(&out.Spec)
	out.Spec.DefaultBackend, out.Spec.Rules = nil, nil
	for i := range stable.Spec.Rules {
		rule := stable.Spec.Rules[i].DeepCopy()
		if rule.HTTP == nil {
			continue
		}
		var paths []networkingv1.HTTPIngressPath
		for _, path := range rule.HTTP.Paths {
			if service := path.Backend.Service; service != nil && service.Name == s.Stable { // a backend may also be a resource
				service.Name = s.Canary
				paths = append(paths, path)
			}
		}
		if rule.HTTP.Paths = paths; len(paths) > 0 {
			out.Spec.Rules = append(out.Spec.Rules, *rule)
		}
	}
	if len(out.Spec.Rules) == 0 {
		return nil, fmt.Errorf("no rule of Ingress %s leads to Service %s", stable.Name, s.Stable)
	}
	return out, nil
}

// IsBuiltIn reports whether the annotations of a class of Ingresses are known without a script.
func IsBuiltIn(class string) bool {
	return slices.Contains([]string{"", "nginx", "higress", "mse", "aliyun-alb"}, class)
}

// IngressShows reports whether an Ingress leads traffic as one that is wanted. What others have added to its metadata does not matter, but
// for annotations that another step would have: those of the union are all that steps may set.
func IngressShows(wanted, live *networkingv1.Ingress, union map[string]bool) bool {
	for key, value := range wanted.Annotations {
		if is, given := live.Annotations[key]; !given || is != value {
			return false
		}
	}
	for key := range live.Annotations {
		if _, given := wanted.Annotations[key]; !given && union[key] {
			return false
		}
	}
	for key, value := range wanted.Labels {
		if live.Labels[key] != value {
			return false
		}
	}
	return equality.Semantic.DeepEqual(wanted.Spec, live.Spec)
}

// IngressAnnotations returns the annotations of a canary Ingress: those of the user's Ingress, and what the class reads.
func IngressAnnotations(stable map[string]string, class string, s Split) (map[string]string, error) {
	prefix := "nginx.ingress.kubernetes.io/"
	switch class {
	case "", "nginx", "higress", "mse":
	case "aliyun-alb":
		prefix = "alb.ingress.kubernetes.io/"
	default:
		return nil, fmt.Errorf("class %s is unknown: use nginx, higress, aliyun-alb or mse", class)
	}
	out := maps.Clone(stable)
	if out == nil {
		out = map[string]string{}
	}
	maps.DeleteFunc(out, func(key, _ string) bool {
		return strings.HasPrefix(key, prefix+"canary") || key == "kubectl.kubernetes.io/last-applied-configuration"
	})
	out[prefix+"canary"] = "true"
	if class == "aliyun-alb" {
		out[prefix+"order"] = "1"
	}
	if len(s.Matches) == 0 {
		out[prefix+"canary-weight"] = strconv.Itoa(int(s.Weight))
		return out, nil
	}
	if err := oneMatch(out, prefix, class, s.Matches); err != nil {
		return nil, err
	}
	const subset, update = "mse.ingress.kubernetes.io/service-subset", "mse.ingress.kubernetes.io/request-header-control-update"
	if _, given := out[subset]; given && class == "mse" {
		out[subset] = "gray"
	}
	if s.Modifier != nil && class == "mse" && len(s.Modifier.Set) > 0 {
		headers := headerMap(s.Modifier.Set)
		var lines []string
		for _, name := range sortedKeys(headers) {
			lines = append(lines, fmt.Sprint(name, " ", headers[name]))
		}
		out[update] = strings.Join(lines, "\n")
	}
	return out, nil
}

// oneMatch says a match in annotations, which have words for one header, cookie or parameter.
func oneMatch(out map[string]string, prefix, class string, matches []v1beta1.HTTPRouteMatch) error {
	m := matches[0]
	parameters := len(m.QueryParams) == 1 && class == "mse"
	tooMuch := len(matches) > 1 || m.Path != nil || len(m.Headers)+len(m.QueryParams) != 1 || len(m.QueryParams) > 0 && !parameters
	if tooMuch {
		return fmt.Errorf("an Ingress of class %s can match one header only", class)
	}
	if parameters {
		say(out, prefix+"canary-by-query", m.QueryParams[0].Name, typeOf(m.QueryParams[0].Type), m.QueryParams[0].Value)
	}
	for _, h := range m.Headers {
		if h.Name == cookieHeader {
			out[prefix+"canary-by-cookie"] = h.Value
			continue
		}
		say(out, prefix+"canary-by-header", h.Name, typeOf(h.Type), h.Value)
	}
	return nil
}

// say writes a name, and a value or a pattern.
func say(out map[string]string, key, name, how, value string) {
	out[key] = name
	if how == string(v1beta1.MatchRegularExpression) {
		out[key+"-pattern"] = value
		return
	}
	out[key+"-value"] = value
}
