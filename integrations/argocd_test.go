package integrations

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// script runs a script as Argo CD does: with the object as the global obj, and the libraries that Argo CD opens.
func script(t *testing.T, path string, object any) lua.LValue {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	t.Cleanup(state.Close)
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString,
		lua.MathLibName: lua.OpenMath, lua.OsLibName: lua.OpenOs,
	} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(encoded, &tree); err != nil {
		t.Fatal(err)
	}
	state.SetGlobal("obj", toLua(state, tree))
	if err := state.DoFile(path); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return state.Get(-1)
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, item := range value {
			table.RawSetString(key, toLua(state, item))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(toLua(state, item))
		}
		return table
	case string:
		return lua.LString(value)
	case float64:
		return lua.LNumber(value)
	case bool:
		return lua.LBool(value)
	}
	return lua.LNil
}

func fromLua(value lua.LValue) any {
	table, ok := value.(*lua.LTable)
	switch {
	case !ok && value.Type() == lua.LTNumber:
		return float64(value.(lua.LNumber))
	case !ok && value.Type() == lua.LTBool:
		return bool(value.(lua.LBool))
	case !ok:
		return value.String()
	case table.MaxN() > 0:
		var list []any
		for i := 1; i <= table.MaxN(); i++ {
			list = append(list, fromLua(table.RawGetInt(i)))
		}
		return list
	}
	object := map[string]any{}
	table.ForEach(func(key, item lua.LValue) { object[key.String()] = fromLua(item) })
	return object
}

func health(t *testing.T, kind string, object any) (status, message string) {
	t.Helper()
	table, ok := script(t, filepath.Join("argocd", kind, "health.lua"), object).(*lua.LTable)
	if !ok {
		t.Fatalf("the health of a %s is no table", kind)
	}
	return table.RawGetString("status").String(), table.RawGetString("message").String()
}

// TestHealthInArgoCD: each script says of objects of our types, in each situation, what Argo CD should show.
func TestHealthInArgoCD(t *testing.T) {
	tested := map[string]bool{}
	for _, table := range []map[string]situation{workloads(), releases(), others()} {
		for name, s := range table {
			tested[s.kind] = true
			status, message := health(t, s.kind, s.object)
			if status != s.status || !strings.Contains(message, s.says) || message == "nil" {
				t.Errorf("%s is %s (%s), want %s (%s)", name, status, message, s.status, s.says)
			}
		}
	}
	folders, err := filepath.Glob("argocd/*/health.lua")
	if err != nil || len(folders) != len(tested) {
		t.Errorf("%d scripts, of which %d are tested: %v", len(folders), len(tested), err)
	}
}

// TestActionsInArgoCD: each action changes one field of our types, and is offered where it makes sense.
func TestActionsInArgoCD(t *testing.T) {
	const progressing, waiting = rolloutsv1beta1.RolloutPhaseProgressing, rolloutsv1beta1.StepStatePaused
	older := map[string]any{"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{}}
	stuck := release(progressing, rolloutsv1beta1.StepStateUpgrade, stalled)
	approve, blue := release(progressing, waiting, asIs), release(progressing, waiting, blueGreen)
	set, stateful, daemon := cloneSet(asIs), statefulSet(asIs), daemonSet(asIs)
	for name, tc := range map[string]struct {
		kind, action string
		object       any
		path         string
		want         any
	}{
		"a CloneSet is paused":             {"apps.kruise.io_CloneSet", "pause", set, "spec.updateStrategy.rollingUpdate.paused", true},
		"a CloneSet of v1alpha1 is paused": {"apps.kruise.io_CloneSet", "pause", older, "spec.updateStrategy.paused", true},
		"a CloneSet goes on":               {"apps.kruise.io_CloneSet", "resume", set, "spec.updateStrategy.rollingUpdate.paused", false},
		"a StatefulSet is paused":          {"apps.kruise.io_StatefulSet", "pause", stateful, "spec.updateStrategy.rollingUpdate.paused", true},
		"a DaemonSet is paused":            {"apps.kruise.io_DaemonSet", "pause", daemon, "spec.updateStrategy.rollingUpdate.paused", true},
		"a SidecarSet is paused":           {"apps.kruise.io_SidecarSet", "pause", &appsv1beta1.SidecarSet{}, "spec.updateStrategy.paused", true},
		"a BroadcastJob is paused":         {"apps.kruise.io_BroadcastJob", "pause", &appsv1beta1.BroadcastJob{}, "spec.paused", true},
		"an AdvancedCronJob is paused":     {"apps.kruise.io_AdvancedCronJob", "pause", &appsv1beta1.AdvancedCronJob{}, "spec.paused", true},
		"a Rollout is paused":              {"rollouts.kruise.io_Rollout", "pause", approve, "spec.strategy.paused", true},
		"a step is approved":               {"rollouts.kruise.io_Rollout", "approve", approve, "status.canaryStatus.currentStepState", "StepReady"},
		"a blue-green step is approved":    {"rollouts.kruise.io_Rollout", "approve", blue, "status.blueGreenStatus.currentStepState", "StepReady"},
		"a step runs anew":                 {"rollouts.kruise.io_Rollout", "retry", stuck, "status.canaryStatus.nextStepIndex", 2.0},
	} {
		got := at(fromLua(script(t, filepath.Join("argocd", tc.kind, "actions", tc.action, "action.lua"), tc.object)), tc.path)
		if got != tc.want {
			t.Errorf("%s: %s is %v, want %v", name, tc.path, got, tc.want)
		}
	}
	for kind, object := range map[string]any{"CloneSet": set, "StatefulSet": stateful, "DaemonSet": daemon} {
		after := fromLua(script(t, filepath.Join("argocd", "apps.kruise.io_"+kind, "actions", "restart", "action.lua"), object))
		annotations, _ := at(after, "spec.template.metadata.annotations").(map[string]any)
		if at, _ := annotations["kubectl.kubernetes.io/restartedAt"].(string); !strings.HasSuffix(at, "Z") {
			t.Errorf("a restart of a %s changes the annotations to %v", kind, annotations)
		}
	}
	for name, tc := range map[string]struct {
		object any
		want   []string
	}{
		"a release that waits for an approval": {approve, []string{"approve", "pause"}},
		"a release of blue-green that waits":   {blue, []string{"approve", "pause"}},
		"a release that is stuck":              {stuck, []string{"approve", "pause", "retry"}},
		"a release that goes on":               {release(progressing, rolloutsv1beta1.StepStateUpgrade, asIs), []string{"pause"}},
		"a Rollout at rest":                    {release(rolloutsv1beta1.RolloutPhaseHealthy, waiting, asIs), []string{"pause"}},
		"a Rollout that is new":                {&rolloutsv1beta1.Rollout{}, []string{"pause"}},
	} {
		if got := offered(t, "rollouts.kruise.io_Rollout", tc.object); !slices.Equal(got, tc.want) {
			t.Errorf("%s is offered %v, want %v", name, got, tc.want)
		}
	}
	paused := cloneSet(func(set *appsv1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate = rolling(func(r *appsv1beta1.RollingUpdateCloneSetStrategy) { r.Paused = true })
	})
	if got := offered(t, "apps.kruise.io_CloneSet", paused); !slices.Equal(got, []string{"restart", "resume"}) {
		t.Errorf("a paused CloneSet is offered %v", got)
	}
}

// at returns what is at a path of an object.
func at(object any, path string) any {
	for _, name := range strings.Split(path, ".") {
		fields, _ := object.(map[string]any)
		object = fields[name]
	}
	return object
}

// offered returns the actions that are not disabled, and fails for one that there is not.
func offered(t *testing.T, kind string, object any) (names []string) {
	t.Helper()
	actions, _ := fromLua(script(t, filepath.Join("argocd", kind, "actions", "discovery.lua"), object)).(map[string]any)
	for name, action := range actions {
		if _, err := os.Stat(filepath.Join("argocd", kind, "actions", name, "action.lua")); err != nil {
			t.Errorf("a %s is offered %s: %v", kind, name, err)
		}
		if fields, _ := action.(map[string]any); fields["disabled"] != true {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestTheConfigMapOfArgoCDHasAllScripts, word by word.
func TestTheConfigMapOfArgoCDHasAllScripts(t *testing.T) {
	var file corev1.ConfigMap
	read(t, "argocd/argocd-cm.yaml", &file)
	scripts, err := filepath.Glob("argocd/*/health.lua")
	if err != nil {
		t.Fatal(err)
	}
	wanted := 0
	for _, path := range scripts {
		wanted++
		kind := filepath.Base(filepath.Dir(path))
		if file.Data["resource.customizations.health."+kind] != read(t, path, nil) {
			t.Errorf("argocd-cm.yaml has another script than %s", path)
		}
		discovery := filepath.Join(filepath.Dir(path), "actions", "discovery.lua")
		if _, err := os.Stat(discovery); err != nil {
			continue
		}
		wanted++
		var actions struct {
			Discovery   string `json:"discovery.lua"`
			Definitions []struct {
				Name   string
				Action string `json:"action.lua"`
			}
		}
		if err := yaml.Unmarshal([]byte(file.Data["resource.customizations.actions."+kind]), &actions); err != nil {
			t.Fatal(err)
		}
		if actions.Discovery != read(t, discovery, nil) || len(actions.Definitions) < 2 {
			t.Errorf("argocd-cm.yaml has another discovery of actions than %s", discovery)
		}
		for _, one := range actions.Definitions {
			if one.Action != read(t, filepath.Join(filepath.Dir(discovery), one.Name, "action.lua"), nil) {
				t.Errorf("argocd-cm.yaml has another action %s of %s", one.Name, kind)
			}
		}
	}
	if len(file.Data) != wanted {
		t.Errorf("argocd-cm.yaml has %d entries, want %d", len(file.Data), wanted)
	}
}
