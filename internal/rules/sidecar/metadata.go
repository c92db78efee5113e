package sidecar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
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
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[key] = value
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
