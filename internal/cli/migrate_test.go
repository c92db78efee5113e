package cli

import (
	"strings"
	"testing"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/cli/migrate"
)

func TestGoalOf(t *testing.T) {
	from := objectOf(t, "apps", "Deployment", "{spec: {replicas: 5}}")
	for name, tc := range map[string]struct {
		noted    string
		replicas int32
		want     migrate.Goal
		refused  string
	}{
		"all":            {"", -1, migrate.Goal{From: "deployment/web", Total: 10, Target: 10}, ""},
		"some":           {"", 2, migrate.Goal{From: "deployment/web", Total: 10, Target: 7}, ""},
		"too many":       {"", 6, migrate.Goal{}, "has only 5"},
		"goes on":        {`{"from": "deployment/web", "total": 4, "target": 3}`, -1, migrate.Goal{From: "deployment/web", Total: 4, Target: 3}, ""},
		"another is on":  {`{"from": "deployment/api", "total": 4, "target": 3}`, -1, migrate.Goal{}, "a move from deployment/api to cloneset/web is not at its end"},
		"a note of none": {`{`, -1, migrate.Goal{}, "annotation " + keys.Migration},
	} {
		t.Run(name, func(t *testing.T) {
			to := cloneSet(t, "", "")
			if tc.noted != "" {
				to.SetAnnotations(map[string]string{keys.Migration: tc.noted})
			}
			got, err := goalOf(from, to, &migration{replicas: tc.replicas})
			if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) || err == nil && got != tc.want {
				t.Errorf("the goal is %+v, %v, want %+v and an error about %q", got, err, tc.want, tc.refused)
			}
		})
	}
}

func TestTargetKind(t *testing.T) {
	for named, want := range map[string]string{"CloneSet": "CloneSet", "asts": "StatefulSet", "daemonsets.apps.kruise.io": "DaemonSet", "deployment": ""} {
		got, err := targetKind(named)
		if got.GroupVersionKind.Kind != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v, want %q", named, got.GroupVersionKind.Kind, err, want)
		}
	}
}
