package manager

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/seed-69ecc383/kruise/internal/admission"
	"github.com/seed-69ecc383/kruise/internal/admission/webhookconfig"
	"github.com/seed-69ecc383/kruise/internal/convert"
	"github.com/seed-69ecc383/kruise/internal/features"
	"github.com/seed-69ecc383/kruise/internal/logging"
	"github.com/seed-69ecc383/kruise/internal/process"
)

// TestShippedRoleGrantsWhatIsNeeded compares what the manager asks for at its start with what it is granted: neither more nor less.
func TestShippedRoleGrantsWhatIsNeeded(t *testing.T) {
	granted, needed := map[string]bool{}, map[string]bool{}
	var rules []rbacv1.PolicyRule
	for _, file := range []string{"rbac/manager_role.yaml", "resourcedistribution/role.yaml", "resourcedistribution/kinds/role.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "config", file))
		if err != nil {
			t.Fatal(err)
		}
		var role rbacv1.ClusterRole
		if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(&role); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				granted[fmt.Sprintf("%s %s.%s", verb, resource, rule.APIGroups[0])] = true
			}
		}
	}
	everything := settingsWith(t, "AllAlpha=true,AllBeta=true")
	everything.DistributedKinds = "ServiceAccount,LimitRange,NetworkPolicy"
	for _, c := range append(everything.controllers(nil), controller{needs: everything.needs()}, controller{needs: everything.protectionNeeds()}) {
		for _, n := range c.needs {
			for _, verb := range n.verbs {
				if a := n.attributes(verb); n.namespace == "" {
					needed[fmt.Sprintf("%s %s.%s", verb, strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/"), a.Group)] = true
				}
			}
		}
	}
	if diff := cmp.Diff(needed, granted); diff != "" {
		t.Errorf("rights (-needed +granted):\n%s", diff)
	}
}

func settingsWith(t *testing.T, gates string) settings {
	t.Helper()
	parsed, err := features.Parse(features.Sources{Flag: gates})
	if err != nil {
		t.Fatal(err)
	}
	return settings{Options: Options{DaemonConfigNamespace: "kruise-daemon-config"}, gates: parsed}
}

// TestRightsOfGatesThatAreOffAreNotAskedFor, so that an operator may take them away.
func TestRightsOfGatesThatAreOffAreNotAskedFor(t *testing.T) {
	for gates, unwanted := range map[string][]string{
		"KruiseDaemon=false": {"nodeimages.apps.kruise.io", "containerrecreaterequests.apps.kruise.io", "nodepodprobes.apps.kruise.io",
			"imagepulljobs.apps.kruise.io", "podprobemarkers.apps.kruise.io"},
		"PodUnavailableBudgetDeleteGate=false": {"*.*/scale", "podunavailablebudgets.policy.kruise.io", "poddisruptionbudgets.policy"},
		"": {"secrets", "imagepulljobs.apps.kruise.io",
			"storageclasses.storage.k8s.io"}, // the defaults
	} {
		s := settingsWith(t, gates)
		for _, c := range append(s.controllers(nil), controller{needs: s.needs()}) {
			for _, n := range c.needs {
				if slices.Contains(unwanted, n.resource) {
					t.Errorf("with gates %q the right on %s is asked for", gates, n.resource)
				}
			}
		}
	}
}

// TestAControllerThatLacksRightsIsOff, and only that one; without what all need nothing starts.
func TestAControllerThatLacksRightsIsOff(t *testing.T) {
	refused := map[string]bool{}
	asked := 0
	api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			asked++
			review := o.(*authorizationv1.SelfSubjectAccessReview)
			a := review.Spec.ResourceAttributes
			review.Status.Allowed = !refused[strings.TrimSuffix(a.Verb+" "+a.Resource+"/"+a.Subresource, "/")]
			return nil
		},
	})
	for right, want := range map[string]map[string][]string{
		"create nothing":                  {},
		"patch pods/ephemeralcontainers":  {"ephemeraljob-controller": {"patch pods/ephemeralcontainers"}},
		"list containerrecreaterequests":  {"containerrecreaterequest-controller": {"list containerrecreaterequests.apps.kruise.io"}},
		"get */scale":                     {"podunavailablebudget-controller": {"get *.*/scale"}},
		"create jobs":                     {"advancedcronjob-controller": {"create jobs.batch"}},
		"watch nodes":                     nil,
		"create podtemplates":             nil,
		"list controllerrevisions":        nil,
		"delete podunavailablebudgets":    {}, // which nobody needs
		"update imagelistpulljobs/status": {},
	} {
		clear(refused)
		refused[right], asked = true, 0
		got, err := settingsWith(t, "").checkRights(t.Context(), &account{client: api, known: map[string]bool{}})
		if diff := cmp.Diff(want, got); diff != "" || (err != nil) != (want == nil) {
			t.Errorf("without %q: %v; controllers that are off (-want +got):\n%s", right, err, diff)
		}
		if asked > 200 {
			t.Errorf("the API server is asked %d times", asked)
		}
	}
}

// TestCertificatesRoleNamesEveryCRD: the manager can't start where it may not read one of them.
func TestCertificatesRoleNamesEveryCRD(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "certs_role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(&role); err != nil {
		t.Fatal(err)
	}
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, "customresourcedefinitions") {
			if diff := cmp.Diff(crds(), rule.ResourceNames); diff != "" {
				t.Errorf("(-needed +granted):\n%s", diff)
			}
			return
		}
	}
	t.Error("the role grants nothing on CRDs")
}

// TestShippedConfigurationsNameWhatIsServed: a webhook that the configurations do not name is never asked.
func TestShippedConfigurationsNameWhatIsServed(t *testing.T) {
	mutating, validating, err := configurations()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	var named []string
	note := func(name string, c admissionv1.WebhookClientConfig) {
		if names[name] {
			t.Errorf("there are two webhooks %s, which no API server takes", name)
		}
		names[name], named = true, append(named, *c.Service.Path)
	}
	for _, w := range mutating.Webhooks {
		note(w.Name, w.ClientConfig)
	}
	for _, w := range validating.Webhooks {
		note(w.Name, w.ClientConfig)
	}
	var served served
	admission.Register(&served, admission.Options{})
	for _, path := range served {
		if !slices.Contains(named, path) {
			t.Errorf("%s is served, and no configuration names it", path)
		}
	}
}

// served collects the paths of webhooks, but for those that only older installations ask.
type served []string

func (s *served) Register(path string, _ http.Handler) {
	if path != convert.Path && !strings.Contains(path, "v1alpha1") {
		*s = append(*s, path)
	}
}

// TestFlagsAreBound: a flag that is bound twice ends the process.
func TestFlagsAreBound(t *testing.T) {
	var o Options
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	o.Bind(fs)
	if err := fs.Parse([]string{"--sidecarset-workers=7"}); err != nil || o.SidecarSetWorkers != 7 {
		t.Errorf("%d workers for SidecarSets, want 7 (%v)", o.SidecarSetWorkers, err)
	}
}

// TestManagersDoNotStandInTheirOwnWay: wherever they are installed, their own Pods can be created while none of them runs.
func TestManagersDoNotStandInTheirOwnWay(t *testing.T) {
	mutating, validating, err := configurations()
	if err != nil {
		t.Fatal(err)
	}
	in := webhookconfig.Input{Manifests: webhookconfig.Manifests{
		Mutating: mutating, Validating: validating, Namespace: "elsewhere", Serves: func(string) bool { return true },
	}}
	once := webhookconfig.Desired(validating, in)
	selectors := map[string]*metav1.LabelSelector{}
	for _, hook := range webhookconfig.Desired(mutating, in).(*admissionv1.MutatingWebhookConfiguration).Webhooks {
		selectors[hook.Name] = hook.NamespaceSelector
	}
	for _, hook := range webhookconfig.Desired(once, in).(*admissionv1.ValidatingWebhookConfiguration).Webhooks {
		selectors[hook.Name] = hook.NamespaceSelector
	}
	for _, name := range []string{webhookconfig.LaunchOrderWebhook, webhookconfig.BudgetWebhook} {
		if diff := cmp.Diff([]string{"kube-system", "kruise-system", "elsewhere"}, selectors[name].MatchExpressions[1].Values); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOptionsAreValidated(t *testing.T) {
	good := Options{
		Log: logging.Options{Format: "text"}, Webhook: process.WebhookOptions{Port: "9876"},
		StateMetrics: process.StateMetrics{Limit: 1},
	}
	for _, w := range good.workers() {
		*w.Number = 1
	}
	cases := map[string]struct {
		change func(*Options)
		want   string
	}{
		"good options":              {func(*Options) {}, ""},
		"an unknown format of logs": {func(o *Options) { o.Log.Format = "xml" }, `--logging-format is "xml", want text or json`},
		"a kind that is not distributed": {func(o *Options) { o.DistributedKinds = "LimitRange,Role" },
			`reading --resourcedistribution-kinds: "Role" is none of ServiceAccount, LimitRange, NetworkPolicy`},
		"no objects with metrics of their state": {func(o *Options) { o.StateMetrics.Limit = 0 }, "--state-metrics-limit is 0, want 1 at least"},
		"no workers":                             {func(o *Options) { o.CloneSetWorkers = 0 }, "--cloneset-workers is 0, want 1 at least"},
		"no workers of jobs":                     {func(o *Options) { o.ImagePullJobWorkers = 0 }, "--imagepulljob-workers is 0, want 1 at least"},
		"a delay into the past": {func(o *Options) { o.NodeImageCreationDelay = -1 },
			"--nodeimage-creation-delay is -1ns, want 0 or more"},
		"tags kept for too long": {func(o *Options) { o.NodeImageExtraTTL = 2678401 },
			"--default-ttlseconds-for-always-nodeimage is 2678401, want 0 to 2678400"},
		"no workers of StatefulSets": {func(o *Options) { o.StatefulSetWorkers = 0 }, "--statefulset-workers is 0, want 1 at least"},
		"no workers of AdvancedCronJobs": {func(o *Options) { o.AdvancedCronJobWorkers = 0 },
			"--advancedcronjob-workers is 0, want 1 at least"},
		"no workers of BroadcastJobs": {func(o *Options) { o.BroadcastJobWorkers = 0 }, "--broadcastjob-workers is 0, want 1 at least"},
		"a port that is not a number": {func(o *Options) { o.Webhook.Port = "-1" },
			`WEBHOOK_PORT is "-1", want the number of a port: address -1: invalid port`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := good
			tc.change(&o)
			got := ""
			if err := o.validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("validate() = %q, want %q", got, tc.want)
			}
		})
	}
}

// TestTheManifestFitsTheManager: times and memory that depend on each other.
func TestTheManifestFitsTheManager(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "manager", "manager.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(&deployment); err != nil {
		t.Fatal(err)
	}
	var o Options
	o.Bind(flag.NewFlagSet("test", flag.ContinueOnError))
	spec := deployment.Spec.Template.Spec
	if grace := time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second; grace < o.ShutdownDelay+process.ShutdownTimeout {
		t.Errorf("a manager has %s to end, and takes up to %s", grace, o.ShutdownDelay+process.ShutdownTimeout)
	}
	if spec.PriorityClassName == "" {
		t.Error("managers have no priority")
	}
	if c := spec.TopologySpreadConstraints[0]; c.TopologyKey != corev1.LabelHostname || c.WhenUnsatisfiable != corev1.DoNotSchedule {
		t.Errorf("managers may share a node: %v", c)
	}
	container := spec.Containers[0]
	for _, variable := range container.Env {
		if variable.Name != "GOMEMLIMIT" {
			continue
		}
		limit := resource.MustParse(strings.TrimSuffix(variable.Value, "B"))
		if got := container.Resources.Limits.Memory(); got.Cmp(limit) <= 0 || got.Value() > 2*limit.Value() {
			t.Errorf("GOMEMLIMIT is %s with %s of memory", limit.String(), got.String())
		}
		return
	}
	t.Error("the manifest sets no GOMEMLIMIT")
}

// TestAPIServersDoNotWaitLongForAManager: what waits for one that is not there is refused within seconds.
func TestAPIServersDoNotWaitLongForAManager(t *testing.T) {
	mutating, validating, err := configurations()
	if err != nil {
		t.Fatal(err)
	}
	timeouts := map[string]int32{}
	for _, hook := range mutating.Webhooks {
		timeouts[hook.Name] = *hook.TimeoutSeconds
	}
	for _, hook := range validating.Webhooks {
		timeouts[hook.Name] = *hook.TimeoutSeconds
	}
	for name, timeout := range timeouts {
		want := int32(3)
		if name == "vsidecarset.kb.io" || name == "vworkloadspread.kb.io" { // a second passes until every API server sends the Pods
			want = 5
		}
		if timeout > want {
			t.Errorf("%s is waited for for %d s, want %d at most", name, timeout, want)
		}
	}
}
