package traffic

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/seed-69ecc383/kruise/internal/observe"
	rules "github.com/seed-69ecc383/kruise/internal/rules/traffic"
	"github.com/seed-69ecc383/kruise/internal/script"
)

// Keys of the ConfigMap.
//
// Wire: users write them.
const (
	ingressScript = "lua.traffic.routing.ingress."
	kindScript    = "lua.traffic.routing."
)

// script returns the script of a key; empty if there is none.
func (r *reading) script(ctx context.Context, key string) (string, error) {
	if r.scripts == nil {
		name := types.NamespacedName{Namespace: r.Namespace, Name: ConfigMapName}
		found, err := observe.Find(ctx, r.from, name, &corev1.ConfigMap{})
		if err != nil {
			return "", err
		}
		r.scripts = map[string]string{}
		if found != nil && found.Data != nil {
			r.scripts = found.Data
		}
	}
	return r.scripts[key], nil
}

// annotator returns what gives an Ingress of a class its annotations: a script, or what is built in. It is nil if there is neither.
func (r *reading) annotator(
	ctx context.Context, class string,
) (func(map[string]string, rules.Split) (map[string]string, error), error) {
	if class == "" {
		class = "nginx"
	}
	text, err := r.script(ctx, ingressScript+class)
	switch {
	case err != nil:
		return nil, err
	case text != "":
		return func(annotations map[string]string, s rules.Split) (map[string]string, error) {
			return IngressByScript(ctx, text, annotations, s)
		}, nil
	case rules.IsBuiltIn(class):
		return func(annotations map[string]string, s rules.Split) (map[string]string, error) {
			return rules.IngressAnnotations(annotations, class, s)
		}, nil
	}
	r.missing(fmt.Sprintf("the script for Ingresses of class %s (key %s of ConfigMap %s/%s)",
		class, ingressScript+class, r.Namespace, ConfigMapName))
	return nil, nil
}

// editor returns what edits the objects of a kind that is not built in.
func (r *reading) editor(ctx context.Context, name routeName, goals []goal) (rules.Editor, error) {
	key := kindScript + name.Kind + "." + name.Group
	text, err := r.script(ctx, key)
	if err != nil {
		return rules.Editor{}, err
	}
	if text == "" {
		r.missing(fmt.Sprintf("the script for %s of %s (key %s of ConfigMap %s/%s)",
			name.Kind, name.Group, key, r.Namespace, ConfigMapName))
	}
	edit := func(original rules.Original, s rules.Split) (rules.Original, error) {
		if text == "" {
			return rules.Original{}, fmt.Errorf("no script says how %s of %s lead traffic", name.Kind, name.Group)
		}
		return ObjectByScript(ctx, text, original, s)
	}
	return rules.Editor{Whole: true, Edit: edit, Restore: func(original, now rules.Original, _ rules.Split) rules.Original {
		var edits []rules.Original
		for _, g := range goals {
			edited, err := edit(original, g.split)
			if err != nil || g.err != nil { // it is not known what a release may have changed
				return original
			}
			edits = append(edits, edited)
		}
		return rules.Merged(original, now, edits)
	}}, nil
}

// IngressByScript returns the annotations that a script gives the Ingress of the new version. It is the dry run of a script, too: it reads
// and writes nothing.
//
// The script finds in obj: annotations, those of the user's Ingress; weight, the share in percent as text, "-1" where there are matches;
// matches; canaryService; requestHeaderModifier. It returns the annotations.
func IngressByScript(ctx context.Context, text string, annotations map[string]string, s rules.Split) (map[string]string, error) {
	input, err := inputOf(s)
	if err != nil {
		return nil, err
	}
	input["weight"] = fmt.Sprint(weightOf(s))
	input["annotations"] = fieldsOf(annotations)
	result, err := script.Run(ctx, text, input, script.Default())
	if err != nil {
		return nil, err
	}
	fields, is := result.(map[string]any)
	if !is {
		return nil, fmt.Errorf("the script returns no annotations")
	}
	return textsOf(fields)
}

// ObjectByScript returns an object as a script has it lead traffic. It is the dry run of a script, too: it reads and writes nothing.
//
// The script finds in obj: data, with spec, labels and annotations as the user wrote them; canaryWeight and stableWeight in percent, -1
// where there are matches; matches; stableService; canaryService; requestHeaderModifier. It returns data.
func ObjectByScript(ctx context.Context, text string, original rules.Original, s rules.Split) (rules.Original, error) {
	input, err := inputOf(s)
	if err != nil {
		return rules.Original{}, err
	}
	weight := weightOf(s)
	input["canaryWeight"], input["stableWeight"] = weight, int64(100)-weight
	if weight < 0 {
		input["stableWeight"] = int64(-1)
	}
	input["stableService"] = s.Stable
	input["data"] = map[string]any{
		"spec": specOf(original), "labels": fieldsOf(original.Labels), "annotations": fieldsOf(original.Annotations),
	}
	result, err := script.Run(ctx, text, input, script.Default())
	if err != nil {
		return rules.Original{}, err
	}
	data, _ := result.(map[string]any)
	spec, is := data["spec"].(map[string]any)
	if !is {
		return rules.Original{}, fmt.Errorf("the script returns no object with a spec")
	}
	out := rules.Original{Spec: spec}
	for field, into := range map[string]*map[string]string{"labels": &out.Labels, "annotations": &out.Annotations} {
		fields, _ := data[field].(map[string]any)
		if *into, err = textsOf(fields); err != nil {
			return rules.Original{}, fmt.Errorf("%s: %w", field, err)
		}
	}
	return out, nil
}

// weightOf returns the share of the new version; -1 where matches say which requests it gets.
func weightOf(s rules.Split) int64 {
	if len(s.Matches) > 0 {
		return -1
	}
	return int64(s.Weight)
}

// inputOf returns what all scripts find.
func inputOf(s rules.Split) (map[string]any, error) {
	input := map[string]any{"canaryService": s.Canary}
	if len(s.Matches) > 0 {
		matches, err := asJSON(s.Matches)
		if err != nil {
			return nil, err
		}
		input["matches"] = matches
	}
	if s.Modifier != nil {
		modifier, err := asJSON(s.Modifier)
		if err != nil {
			return nil, err
		}
		input["requestHeaderModifier"] = modifier
	}
	return input, nil
}

func asJSON(value any) (out any, err error) {
	text, err := json.Marshal(value)
	if err == nil {
		err = utiljson.Unmarshal(text, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("writing the input of a script: %w", err)
	}
	return out, nil
}

func specOf(o rules.Original) map[string]any {
	if o.Spec == nil {
		return map[string]any{}
	}
	return o.Spec
}

func fieldsOf(texts map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range texts {
		out[key] = value
	}
	return out
}

// textsOf returns labels or annotations, whose values must be texts.
func textsOf(fields map[string]any) (map[string]string, error) {
	out := map[string]string{}
	for key, value := range fields {
		text, is := value.(string)
		if !is {
			return nil, fmt.Errorf("%s is %v, which is no text", key, value)
		}
		out[key] = text
	}
	return out, nil
}
