package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Severity is how grave a finding is. Wire: programs read it.
type Severity string

const (
	// Broken is what keeps something from working now.
	Broken Severity = "broken"
	// Warning is what will, or may.
	Warning Severity = "warning"
)

// Finding is what is amiss.
type Finding struct {
	Severity Severity `json:"severity"`
	// What is amiss, Why it matters, and Mend is the command or the change that mends it.
	What string `json:"what"`
	Why  string `json:"why"`
	Mend string `json:"mend"`
}

const (
	// minor is the oldest release of Kubernetes that is supported.
	minor = 32
	// soon is how long before the end of a certificate it is warned of: managers replace a CA well before.
	soon = 30 * 24 * time.Hour
)

// list collects findings.
type list []Finding

func (l *list) add(how Severity, what, why, mend string) {
	*l = append(*l, Finding{how, what, why, mend})
}

// Diagnose returns what is amiss, the gravest first.
func Diagnose(f Facts) []Finding {
	var out list
	if f.Minor > 0 && f.Minor < minor {
		out.add(Broken, "the API server is "+f.Server, fmt.Sprintf("Kruise relies on what Kubernetes has since 1.%d", minor),
			fmt.Sprintf("upgrade Kubernetes to 1.%d or later", minor))
	}
	installed := false
	for _, p := range f.Parts {
		if p.Installed() {
			installed = true
			out.part(f, p)
		}
	}
	if !installed {
		out.add(Broken, "Kruise is not installed", "the cluster has neither its kinds nor its managers",
			"helm install kruise charts/kruise --namespace kruise-system --create-namespace")
	}
	out.daemons(f)
	for _, h := range f.Held {
		out.add(Broken, fmt.Sprintf("%s is held by %s, which does not run", h.Object, h.By), "its rollout stands still until then", h.Free)
	}
	for _, what := range f.Unread {
		out.add(Warning, what, "what it would tell is not part of this diagnosis", "ask as somebody who may read it: --as, --context")
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	return out
}

func (l *list) part(f Facts, p Part) {
	pods := fmt.Sprintf("kubectl -n %s get pods; kubectl -n %s logs deployment/%s", p.Namespace, p.Namespace, p.Name)
	var missing []string
	for _, d := range p.Definitions {
		if !d.There {
			missing = append(missing, d.Name)
			continue
		}
		l.definition(f, d)
	}
	if len(missing) > 0 {
		l.add(Broken, fmt.Sprintf("CustomResourceDefinitions are missing: %s", strings.Join(missing, ", ")),
			p.Name+" does not become ready without them", "kubectl apply --server-side -k config/crd (or config/rollouts)")
	}
	switch {
	case !p.Deployed && !p.runs(f.Now):
		l.add(Broken, fmt.Sprintf("no manager: there is no Deployment %s in namespace %s", p.Name, p.Namespace),
			"nothing is rolled out, and writes of its kinds are refused as long as its webhooks are configured",
			"install it again, or delete its webhook configurations if it is to be gone")
	case p.Deployed && p.Ready == 0:
		l.add(Broken, fmt.Sprintf("no Pod of %s is ready", p.Name), "nothing is rolled out, and writes of its kinds are refused", pods)
	case p.Deployed && p.Ready < p.Wanted:
		l.add(Warning, fmt.Sprintf("%d of %d Pods of %s are ready", p.Ready, p.Wanted, p.Name), "one more failure may stop all of it", pods)
	}
	switch {
	case p.Lease == nil && !p.Deployed: // said already
	case p.Lease == nil:
		l.add(Warning, "there is no Lease of "+p.Name, "no manager leads, or leader election is off", pods)
	case !p.Lease.Fresh(f.Now):
		l.add(Broken, fmt.Sprintf("the Lease %s was last renewed %s ago, by %q", p.Lease.Name,
			f.Now.Sub(p.Lease.Renewed).Round(time.Second), p.Lease.Holder),
			"no manager leads: controllers stand still", pods)
	}
	l.webhooks(f, p)
}

func (l *list) definition(f Facts, d Definition) {
	for _, version := range d.Ours {
		if !slices.Contains(d.Served, version) {
			l.add(Broken, fmt.Sprintf("%s does not serve %s", d.Name, version), "the managers read and write that version",
				"kubectl apply --server-side -k config/crd (or config/rollouts)")
		}
	}
	for _, version := range d.Stored {
		if !slices.Contains(d.Served, version) {
			l.add(Broken, fmt.Sprintf("objects of %s may be stored in %s, which it does not serve", d.Name, version), "they can't be read",
				"kubectl apply --server-side -k config/crd (or config/rollouts)")
		}
	}
	if d.Converts {
		l.bundle(f, "the conversion of "+d.Name, d.Bundle)
	}
}

func (l *list) bundle(f Facts, of string, bundle []byte) {
	const mend = "restart the managers: they write the CA anew (kubectl -n kruise-system rollout restart " +
		"deployment/kruise-controller-manager)"
	if len(bundle) == 0 {
		l.add(Broken, of+" has no CA", "API servers trust no manager, and refuse what it is asked about", mend)
		return
	}
	end, err := expiry(bundle)
	switch {
	case err != nil:
		l.add(Broken, fmt.Sprintf("the CA of %s can't be read: %v", of, err), "API servers trust no manager by it", mend)
	case end.Before(f.Now):
		l.add(Broken, fmt.Sprintf("the CA of %s ended on %s", of, end.Format(time.DateOnly)), "API servers trust no manager by it", mend)
	case end.Before(f.Now.Add(soon)):
		l.add(Warning, fmt.Sprintf("the CA of %s ends on %s", of, end.Format(time.DateOnly)),
			"managers should have replaced it long before", mend)
	}
}

func (l *list) webhooks(f Facts, p Part) {
	if len(p.Webhooks) == 0 {
		l.add(Broken, "no webhook of "+p.Name+" is configured", "nothing is checked, filled in or injected",
			"the managers make them once they run; kubectl apply --server-side -k config/webhook (or config/rollouts)")
		return
	}
	seen := map[string]bool{}
	for _, w := range p.Webhooks {
		if key := w.Configuration + string(w.Bundle); !seen[key] {
			seen[key] = true
			l.bundle(f, "webhook "+w.Name+" of "+w.Configuration, w.Bundle)
		}
	}
	if p.Asked && p.Answer != "" {
		why := "writes of its kinds are refused"
		mend := "look whether its Pods are ready, and whether API servers reach their port (NetworkPolicy, firewall)"
		if strings.Contains(p.Answer, "x509") || strings.Contains(p.Answer, "certificate") {
			mend = "the CA in the configuration is not that of the manager: restart the managers, which write it anew"
		}
		l.add(Broken, fmt.Sprintf("the webhooks of %s do not answer: %s", p.Name, p.Answer), why, mend)
	}
}

func (l *list) daemons(f Facts) {
	if !f.Daemon {
		return
	}
	var without []string
	for _, node := range f.Nodes {
		if !slices.Contains(f.Daemons, node) {
			without = append(without, node)
		}
	}
	if len(without) == 0 {
		return
	}
	shown := without[:min(len(without), 5)]
	l.add(Warning, fmt.Sprintf("%d nodes have no daemon that is ready: %s", len(without), strings.Join(shown, ", ")),
		"containers are not restarted, images not pulled and probes not run there",
		"kubectl -n kruise-system get pods -l control-plane=daemon -o wide")
}
