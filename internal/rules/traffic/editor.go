package traffic

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GatewayGroup is the group of Gateway API, IstioGroup that of Istio's routes.
const (
	GatewayGroup = "gateway.networking.k8s.io"
	IstioGroup   = "networking.istio.io"
)

// Editor says how the objects of a kind lead traffic.
type Editor struct {
	// Edit returns the original with traffic led as the split says. It changes nothing.
	Edit func(original Original, s Split) (Original, error)
	// Restore returns what the object is now without what a release has added. It changes nothing.
	Restore func(original, now Original, s Split) Original
	// Whole means that labels and annotations are edited as well as the spec.
	Whole bool
	// Marked means that what a release adds can be told even where nothing is known of the original, if the versions have a Service each.
	Marked bool
}

// EditorOf returns the editor of a kind; false if none is built in.
func EditorOf(kind schema.GroupKind) (Editor, bool) {
	switch kind {
	case schema.GroupKind{Group: GatewayGroup, Kind: string(HTTPRoute)}, schema.GroupKind{Group: GatewayGroup, Kind: string(GRPCRoute)}:
		e := ofSpec(func(spec map[string]any, s Split) (map[string]any, error) {
			return GatewayRoute(RouteKind(kind.Kind), spec, s)
		}, restoredGateway)
		e.Marked = true
		return e, true
	case schema.GroupKind{Group: IstioGroup, Kind: "VirtualService"}:
		e := ofSpec(VirtualService, RestoredVirtualService)
		e.Marked = true
		return e, true
	case schema.GroupKind{Group: IstioGroup, Kind: "DestinationRule"}:
		return ofSpec(
			func(spec map[string]any, _ Split) (map[string]any, error) { return DestinationRule(spec), nil },
			func(original, now map[string]any, _ Split) map[string]any {
				return RestoredDestinationRule(original, now)
			}), true
	}
	return Editor{}, false
}

func ofSpec(
	edit func(map[string]any, Split) (map[string]any, error), restore func(original, now map[string]any, s Split) map[string]any,
) Editor {
	return Editor{
		Edit: func(original Original, s Split) (Original, error) {
			spec, err := edit(original.Spec, s)
			return Original{Spec: spec}, err
		},
		Restore: func(original, now Original, s Split) Original {
			return Original{Spec: restore(original.Spec, now.Spec, s)}
		},
	}
}

// restoredGateway is RestoredRoute, but where both versions share a Service: no mark then tells the rules of a release, so all rules are
// those of before.
func restoredGateway(original, now map[string]any, s Split) map[string]any {
	if s.Stable != s.Canary {
		return RestoredRoute(original, now, s)
	}
	if original == nil {
		return now
	}
	spec := maps.Clone(now)
	delete(spec, "rules")
	if original["rules"] != nil {
		spec["rules"] = original["rules"]
	}
	return spec
}

// Merged returns an object without a release of which no mark tells what it has added: each field of the spec, label and annotation that
// one of the edits changes is as it was before, all others are as they are now. Edits are what releases make of the original.
func Merged(original, now Original, edits []Original) Original {
	out := Original{Spec: maps.Clone(now.Spec), Labels: maps.Clone(now.Labels), Annotations: maps.Clone(now.Annotations)}
	for _, edit := range edits {
		out.Spec = undone(out.Spec, original.Spec, edit.Spec)
		out.Labels = undone(out.Labels, original.Labels, edit.Labels)
		out.Annotations = undone(out.Annotations, original.Annotations, edit.Annotations)
	}
	return out
}

// undone returns a map in which the keys that an edit changes are as they were.
func undone[V any](now, was, edit map[string]V) map[string]V {
	differ := func(key string) bool {
		a, before := was[key]
		b, after := edit[key]
		return before != after || !reflect.DeepEqual(a, b)
	}
	for key := range edit {
		if _, before := was[key]; !before {
			delete(now, key)
		}
	}
	for key, value := range was {
		if differ(key) {
			if now == nil {
				now = map[string]V{}
			}
			now[key] = value
		}
	}
	return now
}
