package ops

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1alpha1"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

// author is a user of the test's namespace who has no rights but those granted.
type author struct {
	client.Client
	*env
	name string
}

func (e *env) author() author {
	e.Helper()
	a := author{env: e, name: "author-of-" + e.Namespace}
	config := rest.CopyConfig(e.Config)
	config.Impersonate.UserName = a.name
	var err error
	a.Client, err = client.New(config, client.Options{Scheme: e.Client.Scheme()})
	e.Must(err)
	return a
}

// grant gives the author verbs on a resource of the namespace.
func (a author) grant(group, resource string, verbs ...string) {
	a.Helper()
	meta := metav1.ObjectMeta{Namespace: a.Namespace, Name: strings.NewReplacer("/", "-", "*", "all").Replace("author-" + resource)}
	rule := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	a.Must(a.env.Client.Create(a.Ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}))
	a.Must(a.env.Client.Create(a.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: a.name}},
	}))
}

// isRefused waits until the author is refused for a reason: rights take a moment.
func (a author) isRefused(what, why string, do func() error) {
	a.Helper()
	a.Eventually(what+" is refused", func() error {
		if err := do(); err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), why) {
			return fmt.Errorf("the answer is %w, want %q", errors.Join(err, errors.New("not that")), why)
		}
		return nil
	})
}

// TestAuthorsOfRequests: a request is filled in from its Pod, which who may not read the Pod must not read there.
func TestAuthorsOfRequests(t *testing.T) {
	e := newEnv(t)
	e.runPod("p", nil, "main")
	a := e.author()
	a.grant("apps.kruise.io", "containerrecreaterequests", "*")
	request := parse[v1beta1.ContainerRecreateRequest](e, "spec: {podName: p, containers: [{name: main}]}")
	request.Name = "r"
	create := func() error { return a.Create(e.Ctx, request.DeepCopy()) }
	a.isRefused("a request", "may not get pods/p in namespace "+e.Namespace, create)
	a.grant("", "pods", "get")
	e.Eventually("who may read the Pod may restart its containers", create)
}

// TestAuthorsOfMarkers: who may not run commands in containers, or write Pods, can't have a marker do it.
func TestAuthorsOfMarkers(t *testing.T) {
	e := newEnv(t)
	a := e.author()
	a.grant("apps.kruise.io", "podprobemarkers", "*")
	marker := func(name, handler string) *v1alpha1.PodProbeMarker {
		m := parse[v1alpha1.PodProbeMarker](e, `spec: {selector: {matchLabels: {app: p}}, probes: [
  {name: a, containerName: main, podConditionType: example.com/a, probe: {`+handler+`}}]}`)
		m.Name = name
		return m
	}
	const connects, runs = "tcpSocket: {port: 1}", "exec: {command: [ask]}"
	create := func(name, handler string) func() error {
		return func() error { return a.Create(e.Ctx, marker(name, handler)) }
	}
	a.isRefused("a marker", "may not patch pods in namespace "+e.Namespace, create("m", connects))
	a.grant("", "pods", "patch")
	e.Eventually("a marker that runs nothing is allowed", create("m", connects))
	const noExec = "may not create pods/exec in namespace "
	a.isRefused("a marker that runs a command", noExec+e.Namespace, create("runs", runs))
	patch := func(name, text string) func() error {
		return func() error {
			return a.Patch(e.Ctx, marker(name, connects), client.RawPatch(types.MergePatchType, []byte(text)))
		}
	}
	const toExec = `{"spec":{"probes":[{"name":"a","containerName":"main","podConditionType":"example.com/a","probe":{"exec":{"command":["ask"]}}}]}}`
	a.isRefused("a command in a marker of one's own", noExec, patch("m", toExec))
	e.Must(e.Client.Create(e.Ctx, marker("others", runs)))
	const other = `{"spec":{"probes":[{"name":"a","containerName":"main","podConditionType":"example.com/b","probe":{"exec":{"command":["other"]}}}]}}`
	a.isRefused("another command in a marker of somebody else", noExec, patch("others", other))
	e.Must(patch("others", `{"metadata":{"labels":{"a":"b"}}}`)())
	a.grant("apps.kruise.io", "podprobemarkers/exec", "create")
	e.Eventually("who is given that right may have markers run commands", create("delegated", runs))
	e.Must(a.Delete(e.Ctx, marker("others", runs)))
}
