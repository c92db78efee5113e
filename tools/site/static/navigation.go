package static

import (
	"slices"
	"strings"
)

// chapter is a part of the navigation, and what is in it.
type chapter struct {
	title string
	pages []string
}

// chapters returns the pages of each part of the navigation, in order. Pages that are in no part are in More, so that a new page is found
// without a change here.
func chapters() []chapter {
	return []chapter{
		{"Start", []string{"README.md", "docs/install.md", "docs/kubectl-kruise.md", "docs/reasons.md", "docs/takeover.md"}},
		{"Workloads", []string{
			"docs/cloneset.md", "docs/statefulset.md", "docs/daemonset.md", "docs/uniteddeployment.md", "docs/workloadspread.md",
			"docs/persistentpodstate.md", "docs/broadcastjob.md", "docs/advancedcronjob.md",
		}},
		{"Rollouts", []string{"docs/rollouts.md", "docs/rollouts-routes.md", "docs/rollouts-traffic.md", "docs/rollouts-design.md"}},
		{"Pods and nodes", []string{
			"docs/sidecarset.md", "docs/container-restart.md", "docs/images.md", "docs/ephemeral-job.md", "docs/probes.md",
			"docs/launch-priority.md", "docs/job-sidecar-terminator.md", "docs/resourcedistribution.md",
		}},
		{"Protection", []string{"docs/podunavailablebudget.md", "docs/deletion-protection.md"}},
		{"Operate", []string{
			"docs/operations.md", "docs/scale.md", "docs/observability.md", "docs/metrics.md", "docs/alerts.md", "docs/admission.md",
			"docs/security.md", "docs/threat-model.md", "docs/daemon.md",
		}},
		{"More", nil},
		{"Project", []string{
			"docs/architecture.md", "docs/style.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "localcluster/README.md",
		}},
		{"Reference", nil},
	}
}

// navigation returns the navigation as a page of the site shows it.
func (s *Site) navigation(at string) []group {
	var out []group
	var placed []string
	for _, c := range chapters() {
		placed = append(placed, c.pages...)
	}
	for _, c := range chapters() {
		pages := c.pages
		for _, name := range s.names() {
			isReference := strings.HasPrefix(name, "docs/reference/")
			if c.title == "Reference" && isReference || c.title == "More" && !isReference && !slices.Contains(placed, name) {
				pages = append(pages, name)
			}
		}
		g := group{Title: c.title}
		for _, name := range pages {
			if p := s.sources[name]; p != nil {
				e := entry{Title: shortTitle(p), Target: relative(at, s.target(name)), Here: s.target(name) == at}
				g.Open = g.Open || e.Here
				g.Entries = append(g.Entries, e)
			}
		}
		if len(g.Entries) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// shortTitle returns a title for a narrow column.
func shortTitle(p *source) string {
	switch p.file {
	case "README.md":
		return "Overview"
	case "docs/reference/README.md":
		return "All kinds"
	}
	title, _, _ := strings.Cut(p.title, ":")
	title, group, isKind := strings.Cut(title, " of ")
	if isKind && strings.HasPrefix(p.file, "docs/reference/") {
		if strings.HasPrefix(group, "apps.") {
			return title
		}
		return title + " (" + strings.TrimSuffix(group, ".kruise.io") + ")"
	}
	if isKind {
		return title + " of " + group
	}
	return title
}
