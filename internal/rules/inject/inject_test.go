package inject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

var now = time.Date(2026, 1, 5, 8, 0, 0, 123, time.UTC)

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func parse[T any](t fataler, text string) *T {
	t.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte(text)) // in one step the package takes fields of inner structs for those of embedded ones
	if err != nil {
		t.Fatal(err)
	}
	out, decoder := new(T), json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		t.Fatal(err)
	}
	return out
}

// setOf returns a SidecarSet from its spec, which selects everything with app=web unless it says otherwise.
func setOf(t fataler, name, spec string) *v1beta1.SidecarSet {
	t.Helper()
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *parse[v1beta1.SidecarSetSpec](t, spec)}
	if set.Spec.Selector == nil {
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	}
	return set
}

func compiled(t fataler, name, spec string) *Sidecars {
	t.Helper()
	s, err := Compile(setOf(t, name, spec))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func names(containers []corev1.Container) string {
	var all []string
	for _, c := range containers {
		all = append(all, c.Name)
	}
	return strings.Join(all, " ")
}

func TestPlaces(t *testing.T) {
	a := `{containers: [{name: z, podInjectPolicy: BeforeAppContainer}, {name: m, podInjectPolicy: AfterAppContainer}]}`
	b := `{containers: [{name: c}]}`
	inits := `{initContainers: [{name: x}, {name: "y", podInjectPolicy: BeforeAppContainer}, {name: "n", restartPolicy: Always, podInjectPolicy: AfterAppContainer}]}`
	for name, tc := range map[string]struct {
		sets             []string
		sorted           bool
		pod              string
		init, containers string
	}{
		"in the order of their SidecarSets": {sets: []string{a, b}, containers: "z c app m"},
		"sorted by name":                    {sets: []string{a, b}, sorted: true, containers: "c z app m"},
		"init containers by name":           {sets: []string{inits}, pod: `{initContainers: [{name: i}], containers: [{name: app}]}`, init: "y i n x", containers: "app"},
		"one that is there keeps its place": {sets: []string{a}, pod: `{containers: [{name: m}, {name: app}, {name: z}]}`, containers: "m app z"},
		"twins":                             {sets: []string{`{containers: [{name: envoy, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e}}]}`}, containers: "envoy-1 envoy-2 app"},
		"twins sorted by their own names":   {sets: []string{`{containers: [{name: b, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e}}, {name: b-1a}]}`}, sorted: true, containers: "b-1 b-1a b-2 app"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.pod == "" {
				tc.pod = `{containers: [{name: app}]}`
			}
			p := &corev1.Pod{Spec: *parse[corev1.PodSpec](t, tc.pod)}
			var all []*Sidecars
			for i, spec := range tc.sets {
				all = append(all, compiled(t, fmt.Sprintf("set-%d", i), spec))
			}
			if _, err := Into(p, all, Options{SortByName: tc.sorted, Now: now}); err != nil {
				t.Fatal(err)
			}
			if got := names(p.Spec.InitContainers) + " | " + names(p.Spec.Containers); got != tc.init+" | "+tc.containers {
				t.Errorf("got %s, want %s | %s", got, tc.init, tc.containers)
			}
		})
	}
}

func TestWhatAPodBecomes(t *testing.T) {
	hot := `{containers: [{name: envoy, image: v1, env: [{name: A, value: a}], upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e}}]}`
	for name, tc := range map[string]struct {
		set, pod string
		want     string // the spec
	}{
		"a volume of the Pod wins, and the sidecar mounts it": {
			set: `{containers: [{name: log, volumeMounts: [{name: logs, mountPath: /var/log}]}], volumes: [{name: logs, emptyDir: {}}, {name: unused, emptyDir: {}}]}`,
			pod: `{spec: {containers: [{name: app, volumeMounts: [{name: logs, mountPath: /app/logs}]}], volumes: [{name: logs, persistentVolumeClaim: {claimName: pvc-xxx}}]}}`,
			want: `{containers: [{name: log, env: [{name: IS_INJECTED, value: "true"}], volumeMounts: [{name: logs, mountPath: /var/log}]}, {name: app, volumeMounts: [{name: logs, mountPath: /app/logs}]}],
				volumes: [{name: logs, persistentVolumeClaim: {claimName: pvc-xxx}}]}`,
		},
		"only volumes in use come along": {
			set: `{containers: [{name: log, volumeMounts: [{name: logs, mountPath: /l}], volumeDevices: [{name: disk, devicePath: /dev/x}]}], volumes: [{name: unused}, {name: logs, emptyDir: {}}, {name: disk}]}`,
			pod: `{spec: {containers: [{name: app}]}}`,
			want: `{containers: [{name: log, env: [{name: IS_INJECTED, value: "true"}], volumeMounts: [{name: logs, mountPath: /l}], volumeDevices: [{name: disk, devicePath: /dev/x}]}, {name: app}],
				volumes: [{name: logs, emptyDir: {}}, {name: disk}]}`,
		},
		"what the app mounts is shared, but for paths that the sidecar uses": {
			set: `{containers: [{name: s, shareVolumePolicy: {type: enabled}, volumeMounts: [{name: own, mountPath: /var/log/}]}], volumes: [{name: own}]}`,
			pod: `{spec: {containers: [
				{name: app, env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: X, value: x}], volumeMounts: [{name: data, mountPath: /data, subPathExpr: $(POD_NAME), readOnly: true}, {name: logs, mountPath: /var/log}], volumeDevices: [{name: disk, devicePath: /dev/xvda}]},
				{name: two, volumeMounts: [{name: other, mountPath: /data}]},
				{name: foreign, env: [{name: IS_INJECTED, value: "true"}], volumeMounts: [{name: theirs, mountPath: /theirs}]}]}}`,
			want: `{containers: [
				{name: s, env: [{name: IS_INJECTED, value: "true"}, {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], volumeMounts: [{name: own, mountPath: /var/log/}, {name: data, mountPath: /data, subPathExpr: $(POD_NAME), readOnly: true}]},
				{name: app, env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: X, value: x}], volumeMounts: [{name: data, mountPath: /data, subPathExpr: $(POD_NAME), readOnly: true}, {name: logs, mountPath: /var/log}], volumeDevices: [{name: disk, devicePath: /dev/xvda}]},
				{name: two, volumeMounts: [{name: other, mountPath: /data}]},
				{name: foreign, env: [{name: IS_INJECTED, value: "true"}], volumeMounts: [{name: theirs, mountPath: /theirs}]}], volumes: [{name: own}]}`,
		},
		"devices are shared when that is asked for, where no mount is": {
			set: `{initContainers: [{name: s, shareVolumePolicy: {type: enabled}, shareVolumeDevicePolicy: {type: enabled}}]}`,
			pod: `{spec: {containers: [{name: app, volumeMounts: [{name: m, mountPath: /x}], volumeDevices: [{name: d, devicePath: /x}, {name: disk, devicePath: /dev/xvda}]}]}}`,
			want: `{initContainers: [{name: s, env: [{name: IS_INJECTED, value: "true"}], volumeMounts: [{name: m, mountPath: /x}], volumeDevices: [{name: disk, devicePath: /dev/xvda}]}],
				containers: [{name: app, volumeMounts: [{name: m, mountPath: /x}], volumeDevices: [{name: d, devicePath: /x}, {name: disk, devicePath: /dev/xvda}]}]}`,
		},
		"variables are taken over, sorted, whole": {
			set: `{containers: [{name: s, env: [{name: B, value: mine}], transferEnv: [{sourceContainerNameFrom: {fieldRef: {fieldPath: "metadata.labels['main']"}}, sourceContainerName: nobody, envName: A, envNames: [C, B, missing]}]}]}`,
			pod: `{metadata: {labels: {main: app}}, spec: {containers: [{name: app, env: [{name: C, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}, {name: B, value: b}, {name: A, value: a}]}]}}`,
			want: `{containers: [{name: s, env: [{name: B, value: mine}, {name: IS_INJECTED, value: "true"}, {name: A, value: a}, {name: C, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]},
				{name: app, env: [{name: C, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}, {name: B, value: b}, {name: A, value: a}]}]}`,
		},
		"variables that one's own refer to come first": {
			set:  `{containers: [{name: s, env: [{name: B, value: "x-$(A)"}], transferEnv: [{sourceContainerName: app, envName: A}]}]}`,
			pod:  `{spec: {containers: [{name: app, env: [{name: A, value: a}]}]}}`,
			want: `{containers: [{name: s, env: [{name: A, value: a}, {name: B, value: "x-$(A)"}, {name: IS_INJECTED, value: "true"}]}, {name: app, env: [{name: A, value: a}]}]}`,
		},
		"without the label there is nothing to take over": {
			set:  `{containers: [{name: s, transferEnv: [{sourceContainerNameFrom: {fieldRef: {fieldPath: "metadata.labels['main']"}}, envName: A}]}]}`,
			pod:  `{spec: {containers: [{name: app, env: [{name: A, value: a}]}]}}`,
			want: `{containers: [{name: s, env: [{name: IS_INJECTED, value: "true"}]}, {name: app, env: [{name: A, value: a}]}]}`,
		},
		"pull secrets are added once": {
			set:  `{imagePullSecrets: [{name: a}, {name: b}], containers: [{name: s}]}`,
			pod:  `{spec: {imagePullSecrets: [{name: z}, {name: b}], containers: [{name: app}]}}`,
			want: `{imagePullSecrets: [{name: z}, {name: b}, {name: a}], containers: [{name: s, env: [{name: IS_INJECTED, value: "true"}]}, {name: app}]}`,
		},
		"twins differ in name, image and version": {
			set: hot, pod: `{spec: {containers: [{name: app}]}}`,
			want: `{containers: [
				{name: envoy-1, image: v1, env: [{name: A, value: a}, {name: IS_INJECTED, value: "true"},
					{name: SIDECARSET_VERSION, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: "metadata.annotations['version.sidecarset.kruise.io/envoy-1']"}}},
					{name: SIDECARSET_VERSION_ALT, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: "metadata.annotations['versionalt.sidecarset.kruise.io/envoy-1']"}}}]},
				{name: envoy-2, image: e, env: [{name: A, value: a}, {name: IS_INJECTED, value: "true"},
					{name: SIDECARSET_VERSION, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: "metadata.annotations['version.sidecarset.kruise.io/envoy-2']"}}},
					{name: SIDECARSET_VERSION_ALT, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: "metadata.annotations['versionalt.sidecarset.kruise.io/envoy-2']"}}}]},
				{name: app}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := parse[corev1.Pod](t, tc.pod)
			if _, err := Into(p, []*Sidecars{compiled(t, "set", tc.set)}, Options{Now: now}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(*parse[corev1.PodSpec](t, tc.want), p.Spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNotedOnAPod(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		keys.SidecarSetHash:         `{"old":"hash-of-old"}`,
		keys.SidecarSetInjectedList: "old",
	}}}
	hot := `{containers: [{name: envoy, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e}}, {name: a}], initContainers: [{name: i}]}`
	s := compiled(t, "log", hot)
	if _, err := Into(p, []*Sidecars{s}, Options{Now: now}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		keys.SidecarSetHash: `{"log":{"updateTimestamp":"2026-01-05T08:00:00Z","hash":"` + s.hashes.Full + `","sidecarSetName":"log","sidecarList":["a","envoy"],"controllerRevision":"` + s.revision + `"},` +
			`"old":{"updateTimestamp":null,"hash":"hash-of-old","sidecarSetName":"old","sidecarList":null}}`,
		keys.SidecarSetHashWithoutImage:             `{"log":{"updateTimestamp":"2026-01-05T08:00:00Z","hash":"` + s.hashes.WithoutImage + `","sidecarSetName":"log","sidecarList":["a","envoy"]}}`,
		keys.SidecarSetInjectedList:                 "log,old",
		keys.SidecarSetWorkingHotUpgradeContainer:   `{"envoy":"envoy-1"}`,
		keys.SidecarSetVersionPrefix + "envoy-1":    "1",
		keys.SidecarSetVersionAltPrefix + "envoy-1": "0",
		keys.SidecarSetVersionPrefix + "envoy-2":    "0",
		keys.SidecarSetVersionAltPrefix + "envoy-2": "1",
	}
	if diff := cmp.Diff(want, p.Annotations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNotices(t *testing.T) {
	p := parse[corev1.Pod](t, `{metadata: {annotations: {kruise.io/sidecarset-hash: "nonsense", json: plain}}, spec: {containers: [{name: log}, {name: app}]}}`)
	set := `{containers: [{name: log}], patchPodMetadata: [{patchPolicy: MergePatchJson, annotations: {json: '{"a":1}'}}]}`
	notices, err := Into(p, []*Sidecars{compiled(t, "set", set)}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	want := []Notice{
		{SidecarSet: "set", Text: "SidecarSet set: annotation json keeps its value: reading the value: invalid character 'p' looking for beginning of value"},
		{SidecarSet: "set", Replaced: "log", Text: "container log is replaced by SidecarSet set"},
		{SidecarSet: "set", Text: "SidecarSet set: what the Pod brought along can't be read, and is dropped: reading annotation kruise.io/sidecarset-hash: invalid character 'o' in literal null (expecting 'u')"},
	}
	if diff := cmp.Diff(want, notices); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTwinsOfAnExportedPodKeepTheirState: which of them works, and with which version, is not for injection to change.
func TestTwinsOfAnExportedPodKeepTheirState(t *testing.T) {
	hot := func(image string) *Sidecars {
		return compiled(t, "set", `{containers: [{name: envoy, image: `+image+`, upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: e}}]}`)
	}
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	if _, err := Into(p, []*Sidecars{hot("v1")}, Options{Now: now}); err != nil {
		t.Fatal(err)
	}
	p.Annotations[keys.SidecarSetWorkingHotUpgradeContainer] = `{"envoy":"envoy-2"}`
	p.Annotations[keys.SidecarSetVersionPrefix+"envoy-2"] = "7000"
	if _, err := Into(p, []*Sidecars{hot("v2")}, Options{Now: now}); err != nil {
		t.Fatal(err)
	}
	if first, second := p.Spec.Containers[0], p.Spec.Containers[1]; first.Image != "e" || second.Image != "v2" || p.Annotations[keys.SidecarSetVersionPrefix+"envoy-2"] != "7000" {
		t.Errorf("the twins run %s and %s, annotations are %v", first.Image, second.Image, p.Annotations)
	}
}

func TestResources(t *testing.T) {
	two := `{containers: [{name: a, resources: {limits: {cpu: 200m, memory: 1Gi}, requests: {cpu: 50m}}}, {name: b, resources: {limits: {cpu: 400m, memory: 1Gi}, requests: {cpu: 100m}}}]}`
	unlimited := `{containers: [{name: a, resources: {limits: {memory: 1Gi}, requests: {cpu: 50m}}}, {name: b, resources: {limits: {cpu: 400m}}}]}`
	for name, tc := range map[string]struct {
		pod, policy string
		want        string
		wantErr     string
	}{
		"limits of the sum":                       {two, `{targetContainersMode: sum, resourcesExpr: {limits: {cpu: "max(cpu*50%, 50m)"}}}`, `{limits: {cpu: 300m}}`, ""},
		"limits of the largest":                   {two, `{targetContainersMode: max, resourcesExpr: {limits: {cpu: "max(cpu*50%, 50m)", memory: memory}}}`, `{limits: {cpu: 200m, memory: 1Gi}}`, ""},
		"requests of the largest":                 {two, `{targetContainersMode: max, resourcesExpr: {requests: {cpu: "max(cpu*50%,50m)", memory: "memory"}}}`, `{requests: {cpu: 50m, memory: "0"}}`, ""},
		"of one by its name":                      {two, `{targetContainersMode: sum, targetContainersNameRegex: ^b$, resourcesExpr: {limits: {cpu: cpu}}}`, `{limits: {cpu: 400m}}`, ""},
		"unlimited, but for a constant":           {unlimited, `{targetContainersMode: sum, resourcesExpr: {limits: {cpu: cpu, memory: 200Mi}, requests: {cpu: cpu}}}`, `{limits: {memory: 200Mi}, requests: {cpu: 50m}}`, ""},
		"memory is rounded up":                    {two, `{targetContainersMode: sum, resourcesExpr: {limits: {memory: "10/4"}}}`, `{limits: {memory: "3"}}`, ""},
		"a request above its limit is cut":        {two, `{targetContainersMode: sum, resourcesExpr: {limits: {cpu: "cpu/6"}, requests: {cpu: "cpu"}}}`, `{limits: {cpu: 100m}, requests: {cpu: 100m}}`, ""},
		"no container of that name":               {two, `{targetContainersMode: sum, targetContainersNameRegex: ^x, resourcesExpr: {limits: {cpu: cpu}}}`, ``, `SidecarSet set: container s: no containers match the regex pattern "^x"`},
		"a negative result":                       {two, `{targetContainersMode: sum, resourcesExpr: {limits: {cpu: "cpu-1"}}}`, ``, `SidecarSet set: container s: limit of cpu: "cpu-1" is negative: it is -400 thousandths for a value of 600 thousandths`},
		"sidecars of any SidecarSet are left out": {two, `{targetContainersMode: sum, targetContainersNameRegex: "a|other", resourcesExpr: {limits: {cpu: cpu}}}`, `{limits: {cpu: 200m}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{Spec: *parse[corev1.PodSpec](t, tc.pod)}
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "other"})
			all := []*Sidecars{compiled(t, "set", `{containers: [{name: s, podInjectPolicy: AfterAppContainer, resourcesPolicy: `+tc.policy+`}]}`), compiled(t, "too", `{containers: [{name: other}]}`)}
			_, err := Into(p, all, Options{Now: now})
			if text := fmt.Sprint(err); (err != nil || tc.wantErr != "") && text != tc.wantErr {
				t.Fatalf("error %s, want %s", text, tc.wantErr)
			}
			if err != nil {
				return
			}
			at := slices.IndexFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == "s" })
			if diff := cmp.Diff(*parse[corev1.ResourceRequirements](t, tc.want), p.Spec.Containers[at].Resources); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	asks := `containers: [{name: a}], injectionStrategy: {revision: {customVersion: v1, policy: `
	for name, tc := range map[string]struct {
		spec    string
		want    Choice
		percent int
	}{
		"nothing is asked for":           {`{containers: [{name: a}]}`, Current, 0},
		"an empty name asks for nothing": {`{containers: [{name: a}], injectionStrategy: {revision: {customVersion: ""}}}`, Current, 0},
		"always":                         {`{` + asks + `Always}}, updateStrategy: {partition: 70%}}`, Requested, 0},
		"paused":                         {`{` + asks + `Partial}}, updateStrategy: {partition: 70%, paused: true}}`, Requested, 0},
		"in part":                        {`{` + asks + `Partial}}, updateStrategy: {partition: 70%}}`, Split, 70},
		"in part, with a zero in front":  {`{` + asks + `Partial}}, updateStrategy: {partition: 070%}}`, Split, 70},
		"in part, with a fraction":       {`{` + asks + `Partial}}, updateStrategy: {partition: 70.0%}}`, Split, 70},
		"part of a percent rounds up":    {`{` + asks + `Partial}}, updateStrategy: {partition: 12.5%}}`, Split, 13},
		"more than all is all":           {`{` + asks + `Partial}}, updateStrategy: {partition: 300%}}`, Split, 100},
		"text is no part":                {`{` + asks + `Partial}}, updateStrategy: {partition: "70"}}`, Current, 0},
		"a number of Pods is no part":    {`{` + asks + `Partial}}, updateStrategy: {partition: 7}}`, Current, 0},
		"no partition":                   {`{` + asks + `Partial}}}`, Current, 0},
		"not selected for the update":    {`{` + asks + `Partial}}, updateStrategy: {selector: {matchLabels: {canary: "1"}}}}`, Requested, 0},
		"selected for the update":        {`{` + asks + `Partial}}, updateStrategy: {selector: {matchLabels: {app: web}}}}`, Current, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, percent := Choose(NewCandidate(setOf(t, "set", tc.spec)), map[string]string{"app": "web"})
			if got != tc.want || percent != tc.percent {
				t.Errorf("Choose() = %v, %d, want %v, %d", got, percent, tc.want, tc.percent)
			}
		})
	}
}

func TestTurns(t *testing.T) {
	for percent := range 101 {
		asked := 0
		for n := range 1000 {
			if GetsRequested(n%100, percent) {
				asked++
			}
			if wanted := float64(n+1) * float64(percent) / 100; float64(asked) < wanted-1 || float64(asked) > wanted+1 {
				t.Fatalf("with %d%%, %d of %d Pods got the revision that was asked for", percent, asked, n+1)
			}
		}
	}
}

func TestFind(t *testing.T) {
	revision := func(name, set, version string, number int64) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			keys.SidecarSetName: set, keys.SidecarSetCustomVersion: version,
		}}, Revision: number}
	}
	all := []*appsv1.ControllerRevision{revision("log-1", "log", "v1", 1), revision("log-3", "log", "v1", 3), revision("log-2", "log", "v1", 2), revision("api-1", "api", "v2", 9)}
	for name, tc := range map[string]struct{ revision, want string }{
		"by name":                                {`{revisionName: log-1}`, "log-1"},
		"by version, the newest":                 {`{customVersion: v1}`, "log-3"},
		"the name wins":                          {`{revisionName: log-2, customVersion: v1}`, "log-2"},
		"a name that is not there":               {`{revisionName: log-9}`, "there is no revision log-9 of it, which injectionStrategy.revision.revisionName asks for"},
		"the name of another one's":              {`{revisionName: api-1}`, "there is no revision api-1 of it, which injectionStrategy.revision.revisionName asks for"},
		"a version that only another one's have": {`{customVersion: v2}`, "there is no revision of it with the version v2, which injectionStrategy.revision.customVersion asks for"},
	} {
		t.Run(name, func(t *testing.T) {
			set := setOf(t, "log", `{containers: [{name: a}], injectionStrategy: {revision: `+tc.revision+`}}`)
			got := ""
			found, err := Find(set, all)
			if err != nil {
				got = err.Error()
			} else {
				got = found.Name
			}
			if got != tc.want {
				t.Errorf("Find() = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestProblemsOfASidecarSet(t *testing.T) {
	set := setOf(t, "set", `{containers: [{name: a, resourcesPolicy: {targetContainersMode: sum, resourcesExpr: {limits: {cpu: cpu*cpu}}}}]}`)
	if c := NewCandidate(set); c.Problem == nil || !strings.Contains(c.Problem.Error(), `container a: limits: reading "cpu*cpu": two quantities can't be multiplied`) {
		t.Errorf("the problem is %v", c.Problem)
	}
	set = setOf(t, "set", `{containers: [{name: a}]}`)
	percent := intstr.FromString("7%")
	set.Spec.UpdateStrategy.Partition = &percent
	if c := NewCandidate(set); c.Problem != nil {
		t.Errorf("the problem is %v", c.Problem)
	}
}
