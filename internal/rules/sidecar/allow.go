package sidecar

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// Allowed says which annotations SidecarSets may write into Pods. The administrator of the cluster keeps it as JSON.
type Allowed struct {
	Rules []AllowedRule `json:"rules"`
}

// AllowedRule allows annotations to some SidecarSets.
type AllowedRule struct {
	// Selector selects SidecarSets by their labels; nil selects all.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// AllowedAnnotationKeyExprs are regular expressions, of which one must match a part of the annotation's key.
	AllowedAnnotationKeyExprs []string `json:"allowedAnnotationKeyExprs"`
}

// ParseAllowed reads the list of what is allowed; an empty text allows nothing.
func ParseAllowed(text string) (Allowed, error) {
	var allowed Allowed
	if text == "" {
		return allowed, nil
	}
	if err := json.Unmarshal([]byte(text), &allowed); err != nil {
		return Allowed{}, fmt.Errorf("reading what annotations are allowed: %w", err)
	}
	return allowed, nil
}

// Denied returns why, for each of the annotation keys that a SidecarSet with these labels may not write. openByDefault allows all keys to a
// SidecarSet that no rule selects.
func (a Allowed) Denied(set map[string]string, annotations []string, openByDefault bool) (map[string]string, error) {
	expressions, err := a.expressions(set)
	if err != nil {
		return nil, err
	}
	denied := map[string]string{}
	for _, key := range annotations {
		switch {
		case isReserved(key):
			denied[key] = fmt.Sprintf("sidecarSet patch metadata annotation(%s) is not allowed: it is written by this software alone", key)
		case slices.ContainsFunc(expressions, func(e *regexp.Regexp) bool { return e.MatchString(key) }):
		case len(expressions) > 0:
			denied[key] = fmt.Sprintf("sidecarSet patch metadata annotation(%s) is not allowed", key)
		case openByDefault:
		case len(a.Rules) == 0:
			denied[key] = "SidecarSet patch metadata whitelist not found"
		default:
			denied[key] = "sidecarSet patch metadata annotation is not allowed"
		}
	}
	return denied, nil
}

func (a Allowed) expressions(set map[string]string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	for i, rule := range a.Rules {
		if rule.Selector != nil {
			selector, err := metav1.LabelSelectorAsSelector(rule.Selector)
			if err != nil {
				return nil, fmt.Errorf("reading the selector of rule %d of what is allowed: %w", i, err)
			}
			if !selector.Matches(labels.Set(set)) {
				continue
			}
		}
		for _, text := range rule.AllowedAnnotationKeyExprs {
			expression, err := regexp.Compile(text)
			if err != nil {
				return nil, fmt.Errorf("reading rule %d of what is allowed: %w", i, err)
			}
			out = append(out, expression)
		}
	}
	return out, nil
}

// isReserved reports whether the annotation may hold state of injections and updates.
func isReserved(key string) bool {
	if key == keys.ContainerLaunchPriority {
		return false
	}
	prefix, _, _ := strings.Cut(key, "/")
	return prefix == "kruise.io" || strings.HasSuffix(prefix, ".kruise.io")
}
