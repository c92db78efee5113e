package analysis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// Outcome is what a measurement tells, without the time at which it began.
type Outcome struct {
	Phase          v1beta1.AnalysisPhase
	Value, Message string
}

// Inconclusive returns the outcome of a measurement that tells nothing.
func Inconclusive(format string, args ...any) Outcome {
	return Outcome{Phase: v1beta1.AnalysisInconclusive, Message: fmt.Sprintf(format, args...)}
}

// Holds tells whether a number fulfils a comparison: 0.005 fulfils "< 0.01". Nothing fulfils one that can't be read.
func Holds(c v1beta1.Comparison, number float64) bool {
	text := string(c)
	n := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("<>=!", r) })
	if n <= 0 {
		return false
	}
	limit, err := strconv.ParseFloat(strings.TrimSpace(text[n:]), 64)
	if err != nil {
		return false
	}
	switch text[:n] {
	case "<":
		return number < limit
	case "<=":
		return number <= limit
	case ">":
		return number > limit
	case ">=":
		return number >= limit
	case "==":
		return number == limit
	case "!=":
		return number != limit
	}
	return false
}

// Number judges a number. Without failure, all that is no success fails. NaN tells nothing.
func Number(number float64, success, failure v1beta1.Comparison) Outcome {
	out := Outcome{Value: strconv.FormatFloat(number, 'g', 6, 64)}
	switch {
	case math.IsNaN(number):
		out.Phase, out.Message = v1beta1.AnalysisInconclusive, "NaN is no number"
	case Holds(success, number):
		out.Phase = v1beta1.AnalysisSuccessful
	case failure == "":
		out.Phase, out.Message = v1beta1.AnalysisFailed, "want "+string(success)
	case Holds(failure, number):
		out.Phase, out.Message = v1beta1.AnalysisFailed, "failure is "+string(failure)
	default:
		out.Phase = v1beta1.AnalysisInconclusive
		out.Message = fmt.Sprintf("success is %s, and failure %s", success, failure)
	}
	return out
}

// Prometheus judges the answer to a query.
func Prometheus(check *v1beta1.PrometheusCheck, body []byte) Outcome {
	var answer struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   struct {
			Type   string          `json:"resultType"`
			Result json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return Inconclusive("the answer is not that of Prometheus: %v", err)
	}
	if answer.Status != "success" {
		return Inconclusive("the query failed: %s", answer.Error)
	}
	var sample []any
	switch answer.Data.Type {
	case "scalar":
		if err := json.Unmarshal(answer.Data.Result, &sample); err != nil {
			return Inconclusive("the answer is not that of Prometheus: %v", err)
		}
	case "vector":
		var vector []struct {
			Value []any `json:"value"`
		}
		if err := json.Unmarshal(answer.Data.Result, &vector); err != nil {
			return Inconclusive("the answer is not that of Prometheus: %v", err)
		}
		if len(vector) != 1 {
			return Inconclusive("the query has %d results, and 1 is needed", len(vector))
		}
		sample = vector[0].Value
	default:
		return Inconclusive("the query gives a %s, and a scalar or a vector of one element is needed", answer.Data.Type)
	}
	if len(sample) != 2 {
		return Inconclusive("the answer is not that of Prometheus")
	}
	number, err := strconv.ParseFloat(fmt.Sprint(sample[1]), 64)
	if err != nil {
		return Inconclusive("the answer is not that of Prometheus: %v", err)
	}
	return Number(number, check.Success, check.Failure)
}

// Answer judges the answer to a request.
func Answer(check *v1beta1.HTTPCheck, code int, body []byte) Outcome {
	listed := slices.Contains(check.Status, int32(code))
	value := strconv.Itoa(code)
	switch {
	case !listed && slices.Contains([]int{429, 502, 503, 504}, code):
		return Outcome{v1beta1.AnalysisInconclusive, value, "the server is not there or has too much to do"}
	case len(check.Status) > 0 && !listed:
		return Outcome{v1beta1.AnalysisFailed, value, fmt.Sprintf("want a status of %v", check.Status)}
	case len(check.Status) == 0 && (code < 200 || code > 299):
		return Outcome{v1beta1.AnalysisFailed, value, "want a status from 200 to 299"}
	case check.JSON == nil:
		return Outcome{Phase: v1beta1.AnalysisSuccessful, Value: value}
	}
	return inBody(check.JSON, body)
}

// inBody judges a value in a body.
func inBody(rule *v1beta1.JSONRule, body []byte) Outcome {
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return Inconclusive("the body is not JSON")
	}
	value, ok := find(tree, strings.Split(rule.Field, "."))
	if !ok {
		return Inconclusive("the body has no %s", rule.Field)
	}
	text := fmt.Sprint(value)
	if rule.Equals != "" {
		if text == rule.Equals {
			return Outcome{Phase: v1beta1.AnalysisSuccessful, Value: text}
		}
		return Outcome{v1beta1.AnalysisFailed, text, fmt.Sprintf("want %s to be %q", rule.Field, rule.Equals)}
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Outcome{v1beta1.AnalysisInconclusive, text, rule.Field + " is no number"}
	}
	return Number(number, rule.Success, rule.Failure)
}

// find returns the text, number or boolean that a path leads to.
func find(tree any, path []string) (any, bool) {
	for _, name := range path {
		switch at := tree.(type) {
		case map[string]any:
			tree = at[name]
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n < 0 || n >= len(at) {
				return nil, false
			}
			tree = at[n]
		default:
			return nil, false
		}
	}
	switch tree.(type) {
	case string, json.Number, bool:
		return tree, true
	}
	return nil, false
}

// JobOutcome judges a Job; false while it has not ended.
func JobOutcome(job *batchv1.Job) (Outcome, bool) {
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return Outcome{Phase: v1beta1.AnalysisSuccessful, Value: job.Name}, true
		case c.Type == batchv1.JobFailed && c.Reason == batchv1.JobReasonDeadlineExceeded:
			return Outcome{v1beta1.AnalysisInconclusive, job.Name, "the Job took too long"}, true
		case c.Type == batchv1.JobFailed:
			return Outcome{v1beta1.AnalysisFailed, job.Name, fmt.Sprintf("the Job failed: %s: %s", c.Reason, c.Message)}, true
		}
	}
	return Outcome{}, false
}

// Of returns the result of a measurement that began at a time.
func Of(key Key, began metav1.Time, told Outcome) Result {
	return Result{key, v1beta1.Measurement{Phase: told.Phase, StartedAt: began, Value: told.Value, Message: told.Message}}
}
