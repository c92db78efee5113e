package admission

import (
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/seed-69ecc383/kruise/internal/admission/defaulting"
	"github.com/seed-69ecc383/kruise/internal/admission/podbudget"
	"github.com/seed-69ecc383/kruise/internal/admission/pods"
	"github.com/seed-69ecc383/kruise/internal/admission/protection"
	"github.com/seed-69ecc383/kruise/internal/admission/recreate"
	"github.com/seed-69ecc383/kruise/internal/admission/validating"
	"github.com/seed-69ecc383/kruise/internal/convert"
	"github.com/seed-69ecc383/kruise/internal/defaults"
)

// Options is what the webhooks are to do.
type Options struct {
	Defaults defaults.Options
	// Revisions reads revisions, from the API server rather than from a cache.
	Revisions         client.Reader
	ContainerRecreate recreate.Options
	Validation        validating.Options
	// Pods is what is done to new Pods of whoever creates them; with no steps they are not asked for.
	Pods pods.Chain
	// Budgets is the webhook for Pods with a PodUnavailableBudget; it is not served without an Evaluator.
	Budgets podbudget.Options
	// Protection is deletion protection.
	Protection protection.Options
	// Now is the clock.
	Now func() time.Time
}

// Server is the part of a webhook server that Register needs.
type Server interface {
	Register(path string, hook http.Handler)
}

// Register puts every handler at its path. Older installations name the version in their paths; both spellings work.
func Register(server Server, o Options) {
	server.Register(convert.Path, convert.Handler())
	if len(o.Pods.Steps) > 0 {
		server.Register(pods.Path, &webhook.Admission{Handler: o.Pods})
	}
	if o.Budgets.Evaluator != nil {
		server.Register(podbudget.Path, &webhook.Admission{Handler: podbudget.Handler(o.Budgets)})
	}
	if o.Protection.Enabled {
		server.Register(protection.NamespacePath, &webhook.Admission{Handler: protection.Namespace(o.Protection)})
		server.Register(protection.CRDPath, &webhook.Admission{Handler: protection.CRD(o.Protection)})
		server.Register(protection.ReportPath, &webhook.Admission{Handler: protection.Report(o.Protection)})
	}
	server.Register("/mutate-apps-kruise-io-containerrecreaterequest", &webhook.Admission{Handler: recreate.Handler(o.ContainerRecreate)})
	server.Register("/validate-apps-kruise-io-podprobemarker", &webhook.Admission{Handler: validating.PodProbeMarker(o.Validation)})
	server.Register("/validate-policy-kruise-io-podunavailablebudget",
		&webhook.Admission{Handler: validating.PodUnavailableBudget(o.Validation)})
	statefulSets := defaulting.StatefulSetOptions{Defaults: o.Defaults, Revisions: o.Revisions}
	for kind, handlers := range map[string]struct{ mutate, validate ctrladmission.Handler }{
		"advancedcronjob":      {defaulting.AdvancedCronJob(o.Defaults), validating.AdvancedCronJob(o.Validation)},
		"broadcastjob":         {defaulting.BroadcastJob(o.Defaults), validating.BroadcastJob(o.Validation)},
		"cloneset":             {defaulting.CloneSet(o.Defaults), validating.CloneSet(o.Validation)},
		"daemonset":            {defaulting.DaemonSet(), validating.DaemonSet(o.Validation)},
		"ephemeraljob":         {nil, validating.EphemeralJob(o.Validation)},
		"imagelistpulljob":     {nil, validating.ImageListPullJob(o.Validation)},
		"imagepulljob":         {nil, validating.ImagePullJob(o.Validation)},
		"nodeimage":            {defaulting.NodeImage(o.Now), validating.NodeImage(o.Validation)},
		"persistentpodstate":   {nil, validating.PersistentPodState(o.Validation)},
		"resourcedistribution": {nil, validating.ResourceDistribution(o.Validation)},
		"sidecarset":           {defaulting.SidecarSet(), validating.SidecarSet(o.Validation)},
		"statefulset":          {defaulting.StatefulSet(statefulSets), validating.StatefulSet(o.Validation)},
		"uniteddeployment":     {defaulting.UnitedDeployment(o.Defaults), validating.UnitedDeployment(o.Validation)},
		"workloadspread":       {nil, validating.WorkloadSpread(o.Validation)},
	} {
		for _, group := range []string{"apps-kruise-io", "apps-kruise-io-v1alpha1"} {
			if handlers.mutate != nil { // else the schema has all defaults
				server.Register("/mutate-"+group+"-"+kind, &webhook.Admission{Handler: handlers.mutate})
			}
			server.Register("/validate-"+group+"-"+kind, &webhook.Admission{Handler: handlers.validate})
		}
	}
}

var _ Server = webhook.Server(nil)
