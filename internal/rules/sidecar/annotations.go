package sidecar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

// PatchMetadata writes annotations into a Pod by their policies, and returns what could not be written and why. Retain writes a key that
// the Pod lacks, Overwrite any; MergePatchJson makes {"main":2} and {"log-agent":1} into {"log-agent":1,"main":2}. A value of the Pod that
// is no JSON is kept: it is not ours.
func PatchMetadata(p *corev1.Pod, patches []v1beta1.SidecarSetPatchPodMetadata) []error {
	var problems []error
	for _, patch := range patches {
		for _, key := range slices.Sorted(maps.Keys(patch.Annotations)) {
			if err := patchAnnotation(p, key, patch.Annotations[key], patch.PatchPolicy); err != nil {
				problems = append(problems, err)
			}
		}
	}
	return problems
}

func patchAnnotation(p *corev1.Pod, key, value string, policy v1beta1.SidecarSetPatchPolicy) error {
	was, there := p.Annotations[key]
	switch policy {
	case v1beta1.SidecarSetOverwritePatchPolicy:
	case v1beta1.SidecarSetMergePatchJSONPatchPolicy:
		if was == "" {
			break
		}
		merged, err := MergeJSON(was, value)
		if err != nil {
			return fmt.Errorf("annotation %s keeps its value: %w", key, err)
		}
		value = merged
	default:
		if there {
			return nil
		}
	}
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value)
	return nil
}

// MergeJSON applies a JSON merge patch (RFC 7386) to a JSON value.
func MergeJSON(value, patch string) (string, error) {
	target, err := decodeJSON(value)
	if err != nil {
		return "", fmt.Errorf("reading the value: %w", err)
	}
	change, err := decodeJSON(patch)
	if err != nil {
		return "", fmt.Errorf("reading the patch: %w", err)
	}
	merged, err := json.Marshal(merge(target, change))
	return string(merged), err
}

// decodeJSON reads one JSON value and keeps numbers as they are written.
func decodeJSON(text string) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one JSON value")
	}
	return value, nil
}

func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	fields, ok := target.(map[string]any)
	if !ok {
		fields = map[string]any{}
	}
	for key, change := range changes {
		if change == nil {
			delete(fields, key)
		} else {
			fields[key] = merge(fields[key], change)
		}
	}
	return fields
}

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

// isReserved reports whether the annotation of a Pod is written by this software alone: it holds state, and another value would stop or
// repeat an update, or say that a Pod has what it has not. Others below our prefixes are users' own.
func isReserved(key string) bool {
	switch key {
	case keys.SidecarSetHash, keys.SidecarSetHashWithoutImage, keys.SidecarSetInjectedList, keys.SidecarSetInPlaceUpdateState,
		keys.SidecarSetWorkingHotUpgradeContainer, keys.SidecarsTerminated,
		keys.InPlaceUpdateState, keys.InPlaceUpdateGrace, keys.LifecycleTimestamp, keys.RuntimeContainersMeta,
		keys.ContainerLaunchPriorityCompleted, keys.ContainerLaunchPriorityCurrent,
		keys.RelatedBudget, keys.RelatedBudgetOld, keys.PodProbes, keys.PodProbeMarkers:
		return true
	}
	return strings.HasPrefix(key, keys.SidecarSetVersionPrefix) || strings.HasPrefix(key, keys.SidecarSetVersionAltPrefix)
}
