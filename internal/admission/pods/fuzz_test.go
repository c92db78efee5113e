package pods

import (
	"net/http"
	"testing"

	"github.com/seed-69ecc383/kruise/internal/rules/inject"
)

// FuzzChain asks for any Pod. The chain neither panics nor fails as a server does, and needs no further change of what it has made.
func FuzzChain(f *testing.F) {
	for _, pod := range []string{
		`{metadata: {generateName: web-, labels: {app: web}}, spec: {containers: [{name: app, image: nginx}]}}`,
		`{metadata: {labels: {app: web}, annotations: {a: "{}"}}, spec: {initContainers: [{name: i}], containers: [{name: app, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v}]}}`,
		`{metadata: {annotations: {apps.kruise.io/container-launch-priority: Ordered}}, spec: {containers: [{name: a}, {name: b}]}}`,
		`{spec: {containers: [{name: a, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "-1"}]}, {name: b, env: [{name: KRUISE_CONTAINER_PRIORITY, value: x}]}]}}`,
		`{metadata: {labels: {app: web}, annotations: {kruise.io/sidecarset-hash: "{", kruise.io/sidecarset-injected-list: log}}, spec: {containers: [{name: log-1}]}}`,
	} {
		f.Add(jsonOf(f, pod))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		chain := chainOf(known{candidates: []*inject.Candidate{
			inject.NewCandidate(setOf(t, "log", `{containers: [{name: log, image: "log:1", shareVolumePolicy: {type: enabled}, env: [{name: KRUISE_CONTAINER_PRIORITY, value: "10"}]}], volumes: [{name: own, emptyDir: {}}], patchPodMetadata: [{annotations: {a: '{"log":1}'}, patchPolicy: MergePatchJson}]}`)),
			inject.NewCandidate(setOf(t, "hot", `{containers: [{name: hot, image: "hot:1", upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: "empty:1"}}]}`)),
		}})
		response, out := create(t, chain, raw)
		if !response.Allowed {
			if response.Result.Code >= http.StatusInternalServerError {
				t.Fatalf("answered %v", response.Result)
			}
			return
		}
		again, _ := create(t, chain, out)
		if !again.Allowed || len(again.Patch) > 0 {
			t.Errorf("of what it has made of\n%s,\nwhich is\n%s,\nit says %v and changes %s", raw, out, again.Result, again.Patch)
		}
	})
}
