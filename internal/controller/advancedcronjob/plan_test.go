package advancedcronjob

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/plan"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// job is a Job for a slot that runs, or has ended with a condition.
func job(t *testing.T, slot, condition string) client.Object {
	t.Helper()
	when := at(t, slot)
	start := metav1.NewTime(when)
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly-" + when.Format("1504"), UID: "uid", Annotations: map[string]string{keys.ScheduledAt: slot}}}
	j.Status.StartTime = &start
	if condition != "" {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobConditionType(condition), Status: corev1.ConditionTrue}}
	}
	return j
}

// does lists what a plan does, a word for each write: the status, deletions, and the slot of the job that is made.
func does(p plan.Plan) []string {
	var out []string
	for _, a := range p.Actions() {
		switch a.Verb {
		case plan.UpdateStatus:
			out = append(out, "status")
		case plan.Delete:
			out = append(out, "delete "+a.Before.GetName())
		default:
			out = append(out, string(a.Verb)+" "+a.After.GetAnnotations()[keys.ScheduledAt])
		}
	}
	return out
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		spec    string
		created string
		last    string
		active  []string // names that are written down and were never seen
		jobs    []client.Object
		now     string
		want    []string
		events  []string
		recheck time.Duration
	}{
		"a morning in Shanghai, too early": {
			spec: "{schedule: 0 10 * * *, timeZone: Asia/Shanghai}", created: "2022-09-06T00:00:00Z", now: "2022-09-06T01:59:00Z", recheck: time.Minute,
		},
		"a morning in Shanghai": {
			spec: "{schedule: 0 10 * * *, timeZone: Asia/Shanghai}", created: "2022-09-06T00:00:00Z", now: "2022-09-06T02:00:00Z",
			want: []string{"status", "create 2022-09-06T02:00:00Z"}, recheck: 24 * time.Hour,
		},
		"nobody there for twelve minutes": {
			spec: "{schedule: '*/1 * * * *'}", last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:12:30Z",
			want: []string{"status", "create 2026-01-01T10:12:00Z"}, recheck: 30 * time.Second,
		},
		"nobody there for five hours": {
			spec: "{schedule: '*/1 * * * *'}", last: "2026-01-01T10:00:00Z", now: "2026-01-01T15:00:30Z",
			want: []string{"status", "create 2026-01-01T15:00:00Z"}, events: []string{"TooManyMissedTimes"}, recheck: 30 * time.Second,
		},
		"too late": {
			spec: "{schedule: '*/10 * * * *', startingDeadlineSeconds: 300}", last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:37:00Z",
			events: []string{"MissSchedule"}, recheck: 3 * time.Minute,
		},
		"no deadline at all": {
			spec: "{schedule: '*/10 * * * *', startingDeadlineSeconds: 9223372036854775807}",
			last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:37:00Z",
			want: []string{"status", "create 2026-01-01T10:30:00Z"}, recheck: 3 * time.Minute,
		},
		"every second, of old": {
			spec: "{schedule: '@every 1s'}", last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:00:23Z",
			want: []string{"status", "create 2026-01-01T10:00:20Z"}, recheck: 2 * time.Second,
		},
		"just in time": {
			spec: "{schedule: '*/10 * * * *', startingDeadlineSeconds: 421}", last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:37:00Z",
			want: []string{"status", "create 2026-01-01T10:30:00Z"}, recheck: 3 * time.Minute,
		},
		"paused":                 {spec: "{schedule: '*/10 * * * *', paused: true}", last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:37:00Z"},
		"paused for three slots": {spec: "{schedule: '*/10 * * * *', paused: true}", last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:31:00Z"},
		"and resumed then": {
			spec: "{schedule: '*/10 * * * *', paused: false}", last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:31:00Z",
			want: []string{"status", "create 2026-01-01T10:30:00Z"}, recheck: 9 * time.Minute,
		},
		"and once it has run": {
			spec: "{schedule: '*/10 * * * *'}", last: "2026-01-01T10:30:00Z", now: "2026-01-01T10:31:00Z", jobs: []client.Object{job(t, "2026-01-01T10:30:00Z", "Complete")},
			recheck: 9 * time.Minute,
		},
		"forbidden beside another": {
			spec: "{schedule: '*/10 * * * *', concurrencyPolicy: Forbid}", now: "2026-01-01T10:11:00Z", jobs: []client.Object{job(t, "2026-01-01T10:00:00Z", "")},
			events: []string{"JobAlreadyActive"}, recheck: 9 * time.Minute,
		},
		"forbidden no more": {
			spec: "{schedule: '*/10 * * * *', concurrencyPolicy: Forbid}", now: "2026-01-01T10:11:00Z", jobs: []client.Object{job(t, "2026-01-01T10:00:00Z", "Complete")},
			want: []string{"status", "create 2026-01-01T10:10:00Z"}, recheck: 9 * time.Minute,
		},
		"replaced": {
			spec: "{schedule: '*/10 * * * *', concurrencyPolicy: Replace}", now: "2026-01-01T10:11:00Z", jobs: []client.Object{job(t, "2026-01-01T10:00:00Z", "")},
			want: []string{"status", "delete nightly-1000", "create 2026-01-01T10:10:00Z"}, recheck: 9 * time.Minute,
		},
		"written down and never made": {
			spec: "{schedule: '*/10 * * * *'}", last: "2026-01-01T10:10:00Z", active: []string{"nightly-1767262200"}, now: "2026-01-01T10:11:00Z",
			want: []string{"status", "create 2026-01-01T10:10:00Z"}, recheck: 9 * time.Minute,
		},
		"written down, never made, and past": {
			spec: "{schedule: '*/10 * * * *', startingDeadlineSeconds: 30}", last: "2026-01-01T10:10:00Z", active: []string{"nightly-1767262200"}, now: "2026-01-01T10:11:00Z",
			recheck: 9 * time.Minute,
		},
		"its job was deleted": {
			spec: "{schedule: '*/10 * * * *'}", last: "2026-01-01T10:10:00Z", now: "2026-01-01T10:11:00Z", recheck: 9 * time.Minute,
		},
		"a status older than its job": {
			spec: "{schedule: '*/10 * * * *'}", last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:11:00Z", jobs: []client.Object{job(t, "2026-01-01T10:10:00Z", "")},
			recheck: 9 * time.Minute,
		},
		"the oldest go": {
			spec: "{schedule: '@yearly', successfulJobsHistoryLimit: 2, failedJobsHistoryLimit: 1}", last: "2026-01-01T00:00:00Z", now: "2026-01-01T12:00:00Z",
			jobs: []client.Object{
				job(t, "2026-01-01T10:05:00Z", "Failed"), job(t, "2026-01-01T10:03:00Z", "Complete"), job(t, "2026-01-01T10:00:00Z", "Complete"), job(t, "2026-01-01T10:04:00Z", "Complete"),
				job(t, "2026-01-01T10:01:00Z", "Failed"), job(t, "2026-01-01T10:02:00Z", "Failed"), job(t, "2026-01-01T10:06:00Z", "Complete"),
			},
			want: []string{"delete nightly-1000", "delete nightly-1003", "delete nightly-1001", "delete nightly-1002"}, recheck: 364*24*time.Hour + 12*time.Hour,
		},
		"a schedule that can't be read": {spec: "{schedule: TZ=0}", last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:11:00Z", events: []string{"UnparseableSchedule"}},
		"a zone that is gone":           {spec: "{schedule: '@daily', timeZone: Mars/Base}", last: "2026-01-01T10:00:00Z", now: "2026-01-01T10:11:00Z", events: []string{"UnknownTimeZone"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := Snapshot{Cron: &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly", UID: "cron"}}, Jobs: tc.jobs, Now: at(t, tc.now)}
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &v.Cron.Spec); err != nil {
				t.Fatal(err)
			}
			v.Cron.Spec.Template.JobTemplate = &batchv1.JobTemplateSpec{}
			if tc.created != "" {
				v.Cron.CreationTimestamp = metav1.NewTime(at(t, tc.created))
			}
			if tc.last != "" {
				last := metav1.NewTime(at(t, tc.last))
				v.Cron.Status.LastScheduleTime = &last
			}
			for _, name := range tc.active {
				v.Cron.Status.Active = append(v.Cron.Status.Active, corev1.ObjectReference{Name: name})
			}
			p := Plan(Classify(v))
			if diff := cmp.Diff(tc.want, does(p)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			var events []string
			for _, h := range p.Holds {
				events = append(events, h.Event)
			}
			if !slices.Equal(events, tc.events) {
				t.Errorf("events %v, want %v", events, tc.events)
			}
			if p.Recheck != tc.recheck {
				t.Errorf("looks again in %s, want %s", p.Recheck, tc.recheck)
			}
		})
	}
}

// TestTheStatusComesFirst: who sees a job sees its slot in the status, and of one that could not be made the name.
func TestTheStatusComesFirst(t *testing.T) {
	v := Snapshot{Cron: &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly", UID: "cron"}}, Now: at(t, "2026-01-01T10:11:00Z")}
	v.Cron.Spec.Schedule = "*/10 * * * *"
	v.Cron.Spec.Template.JobTemplate = &batchv1.JobTemplateSpec{}
	v.Cron.CreationTimestamp = metav1.NewTime(at(t, "2026-01-01T10:01:00Z"))
	stages := Plan(Classify(v)).Stages
	if len(stages) != 1 || len(stages[0]) != 1 || len(stages[0][0]) != 2 {
		t.Fatalf("want one chain of two writes, got %v", stages)
	}
	first, second := stages[0][0][0], stages[0][0][1]
	status := first.After.(*v1beta1.AdvancedCronJob).Status
	if first.Verb != plan.UpdateStatus || !status.LastScheduleTime.Time.Equal(at(t, "2026-01-01T10:10:00Z")) ||
		len(status.Active) != 1 || status.Active[0].Name != second.After.GetName() || status.Active[0].UID != "" {
		t.Errorf("the first write is %s of %+v", first.Verb, status)
	}
	if second.Verb != plan.Create || !strings.HasSuffix(second.After.GetName(), "-1767262200") || len(second.After.GetName()) > 63 {
		t.Errorf("the second write is %s of %s", second.Verb, second.After.GetName())
	}
}
