package cli

import "testing"

// TestBudgetWithoutRights plans for who may read a workload and its Pods, and not the budget that covers them.
func TestBudgetWithoutRights(t *testing.T) {
	e := newEnv(t)
	e.Make(`
apiVersion: policy.kruise.io/v1beta1
kind: PodUnavailableBudget
metadata: {name: guard}
spec: {selector: {matchLabels: {app: web}}, maxUnavailable: 1}
`)
	e.Make(replicated("apps.kruise.io/v1beta1", "CloneSet", "replicas: 2"))
	e.done("clone/web")
	e.eventually(0, "PodUnavailableBudget guard allows 1 unavailable Pods", "plan", "clone/web")
	e.ends(1, "forbidden", "status", "clone/web", "--as", "reader")
	e.Make(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules:
- {apiGroups: [apps.kruise.io], resources: [clonesets], verbs: [get]}
- {apiGroups: [apps], resources: [controllerrevisions], verbs: [list]}
- {apiGroups: [""], resources: [pods], verbs: [list]}
`)
	e.Make(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: reader}]
`)
	e.eventually(0, "Warning: it covers Pods", "plan", "clone/web", "--as", "reader")
	e.ok("all Pods are updated", "status", "clone/web", "--as", "reader", "--timeout", "1m") // without the right to watch
	e.ok("are in service", "explain", "clone/web", "--as", "reader")
	e.ends(1, `User "reader" cannot patch resource "clonesets"`, "pause", "clone/web", "--as", "reader")
}
