package analysis

import (
	"math"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

func TestNumbers(t *testing.T) {
	for name, tc := range map[string]struct {
		number           float64
		success, failure v1beta1.Comparison
		want             v1beta1.AnalysisPhase
	}{
		"below":                   {0.005, "< 0.01", "", good},
		"the limit itself":        {0.01, "< 0.01", "", bad},
		"the limit, included":     {0.01, "<= 0.01", "", good},
		"without a space":         {2, ">1", "", good},
		"at least":                {1, ">= 1", "", good},
		"equal":                   {0, "== 0", "", good},
		"not equal":               {0, "!= 0", "", bad},
		"negative":                {-3, "< -2.5", "", good},
		"infinite":                {math.Inf(1), "< 1", "", bad},
		"no number":               {math.NaN(), "!= 1", "", unclear},
		"between the two":         {0.03, "< 0.01", "> 0.05", unclear},
		"a failure":               {0.06, "< 0.01", "> 0.05", bad},
		"a rule that is not read": {0.06, "about 1", "", bad},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Number(tc.number, tc.success, tc.failure); got.Phase != tc.want {
				t.Errorf("%+v, want %s", got, tc.want)
			}
		})
	}
}

func TestAnswersOfPrometheus(t *testing.T) {
	rule := &v1beta1.PrometheusCheck{Success: "< 1"}
	for name, tc := range map[string]struct {
		body string
		want v1beta1.AnalysisPhase
		says string
	}{
		"a vector of one":  {`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0.5"]}]}}`, good, ""},
		"a scalar":         {`{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`, bad, "want < 1"},
		"no data":          {`{"status":"success","data":{"resultType":"vector","result":[]}}`, unclear, "the query has 0 results, and 1 is needed"},
		"two":              {`{"status":"success","data":{"resultType":"vector","result":[{"value":[1,"0"]},{"value":[1,"0"]}]}}`, unclear, "2 results"},
		"not a number":     {`{"status":"success","data":{"resultType":"scalar","result":[1,"NaN"]}}`, unclear, "NaN"},
		"a range":          {`{"status":"success","data":{"resultType":"matrix","result":[]}}`, unclear, "gives a matrix"},
		"an error":         {`{"status":"error","errorType":"bad_data","error":"parse error"}`, unclear, "the query failed: parse error"},
		"a page":           {`<html>`, unclear, "not that of Prometheus"},
		"half a sample":    {`{"status":"success","data":{"resultType":"scalar","result":[1]}}`, unclear, "not that of Prometheus"},
		"no sample":        {`{"status":"success","data":{"resultType":"vector","result":[{}]}}`, unclear, "not that of Prometheus"},
		"a broken scalar":  {`{"status":"success","data":{"resultType":"scalar","result":{}}}`, unclear, "not that of Prometheus"},
		"a vector of junk": {`{"status":"success","data":{"resultType":"vector","result":7}}`, unclear, "not that of Prometheus"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Prometheus(rule, []byte(tc.body)); got.Phase != tc.want || !strings.Contains(got.Message, tc.says) {
				t.Errorf("%+v, want %s: %s", got, tc.want, tc.says)
			}
		})
	}
}

func TestAnswersToRequests(t *testing.T) {
	rate := &v1beta1.JSONRule{Field: "data.0.rate", Success: "< 1"}
	state := &v1beta1.JSONRule{Field: "ok", Equals: "true"}
	for name, tc := range map[string]struct {
		check v1beta1.HTTPCheck
		code  int
		body  string
		want  Outcome
	}{
		"any success":              {v1beta1.HTTPCheck{}, 204, "", Outcome{good, "204", ""}},
		"a failure":                {v1beta1.HTTPCheck{}, 500, "", Outcome{bad, "500", "want a status from 200 to 299"}},
		"a redirection":            {v1beta1.HTTPCheck{}, 302, "", Outcome{bad, "302", "want a status from 200 to 299"}},
		"nobody there":             {v1beta1.HTTPCheck{}, 503, "", Outcome{unclear, "503", "the server is not there or has too much to do"}},
		"503 is what is wanted":    {v1beta1.HTTPCheck{Status: []int32{503}}, 503, "", Outcome{good, "503", ""}},
		"another than listed":      {v1beta1.HTTPCheck{Status: []int32{201}}, 200, "", Outcome{bad, "200", "want a status of [201]"}},
		"a number in the body":     {v1beta1.HTTPCheck{JSON: rate}, 200, `{"data":[{"rate":0.5}]}`, Outcome{good, "0.5", ""}},
		"a number as text":         {v1beta1.HTTPCheck{JSON: rate}, 200, `{"data":[{"rate":"2"}]}`, Outcome{bad, "2", "want < 1"}},
		"a text instead":           {v1beta1.HTTPCheck{JSON: rate}, 200, `{"data":[{"rate":"low"}]}`, Outcome{unclear, "low", "data.0.rate is no number"}},
		"a body without it":        {v1beta1.HTTPCheck{JSON: rate}, 200, `{"data":[]}`, Outcome{unclear, "", "the body has no data.0.rate"}},
		"a member of a number":     {v1beta1.HTTPCheck{JSON: rate}, 200, `{"data":7}`, Outcome{unclear, "", "the body has no data.0.rate"}},
		"an object is no value":    {v1beta1.HTTPCheck{JSON: rate}, 200, `{"data":[{"rate":{}}]}`, Outcome{unclear, "", "the body has no data.0.rate"}},
		"no JSON":                  {v1beta1.HTTPCheck{JSON: rate}, 200, `ok`, Outcome{unclear, "", "the body is not JSON"}},
		"a boolean":                {v1beta1.HTTPCheck{JSON: state}, 200, `{"ok":true}`, Outcome{good, "true", ""}},
		"another boolean":          {v1beta1.HTTPCheck{JSON: state}, 200, `{"ok":false}`, Outcome{bad, "false", `want ok to be "true"`}},
		"a bad status comes first": {v1beta1.HTTPCheck{JSON: state}, 404, `{"ok":true}`, Outcome{bad, "404", "want a status from 200 to 299"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Answer(&tc.check, tc.code, []byte(tc.body)); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestJobs(t *testing.T) {
	owner := &v1beta1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a.very.long.name.of.a.rollout.that.goes.on.and.on", UID: "u"}}
	request := Request{ID: "x", Number: 1, Check: v1beta1.Check{Name: strings.Repeat("c", 30), Job: &v1beta1.JobCheck{}}}
	job := Job(owner, request)
	if len(job.Name) > maxJobName || *job.Spec.ActiveDeadlineSeconds != 600 || *job.Spec.TTLSecondsAfterFinished != 3600 ||
		job.Labels[keys.AnalysisCheck] != request.Check.Name || job.OwnerReferences[0].UID != "u" {
		t.Errorf("%+v", job)
	}
	if again := Job(owner, request); again.Name != job.Name {
		t.Errorf("names %s and %s of one measurement", job.Name, again.Name)
	}
	next := request
	next.Number = 2
	if Job(owner, next).Name == job.Name {
		t.Errorf("two measurements have a Job %s", job.Name)
	}
	request.Check.TimeoutSeconds = ptr.To[int32](5)
	request.Check.Job.Template.Spec.ActiveDeadlineSeconds = ptr.To[int64](3)
	request.Check.Job.Template.Spec.TTLSecondsAfterFinished = ptr.To[int32](1)
	if job = Job(owner, request); *job.Spec.ActiveDeadlineSeconds != 3 || *job.Spec.TTLSecondsAfterFinished != 1 {
		t.Errorf("%+v", job.Spec)
	}
	for name, tc := range map[string]struct {
		condition batchv1.JobCondition
		want      v1beta1.AnalysisPhase
		done      bool
	}{
		"complete":     {batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}, good, true},
		"failed":       {batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonBackoffLimitExceeded}, bad, true},
		"too long":     {batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonDeadlineExceeded}, unclear, true},
		"under way":    {batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionFalse}, "", false},
		"nearly ended": {batchv1.JobCondition{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			job.Status.Conditions = []batchv1.JobCondition{tc.condition}
			if got, done := JobOutcome(job); got.Phase != tc.want || done != tc.done {
				t.Errorf("%+v, %v", got, done)
			}
		})
	}
}
