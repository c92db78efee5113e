package pull

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/internal/node/cri"
	rules "github.com/seed-69ecc383/kruise/internal/rules/pull"
	"github.com/seed-69ecc383/kruise/internal/rules/registry"
)

// fakeRuntime is a runtime whose pulls take time and go as they are told; the last answer stays. One that tells a pull that it is away is so for the next
// question, too, unless it is here.
type fakeRuntime struct {
	now     time.Time
	takes   time.Duration
	present map[string]string
	answers []error
	pulls   []cri.Pull
	began   []time.Duration
	here    bool
	away    error
}

func (r *fakeRuntime) ImageID(_ context.Context, image string) (string, error) {
	away := r.away
	r.away = nil
	return r.present[image], away
}

func (r *fakeRuntime) PullImage(ctx context.Context, p cri.Pull) error {
	r.pulls = append(r.pulls, p)
	r.began = append(r.began, r.now.Sub(time.Unix(0, 0)))
	takes := r.takes
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < takes {
		takes = time.Until(deadline).Round(time.Second)
	}
	r.now = r.now.Add(takes)
	err := r.answers[0]
	if len(r.answers) > 1 {
		r.answers = r.answers[1:]
	}
	if cri.IsAway(err) && !r.here {
		r.away = err
	}
	if err == nil {
		r.present[p.Image] = "sha256:1"
	}
	return err
}

func TestRun(t *testing.T) {
	unknown := errors.New("manifest unknown")
	away := status.Error(codes.Unavailable, "connection refused")
	refused := errors.New("401 Unauthorized")
	limits := func(retries int32, timeout int32) *v1beta1.ImageTagPullPolicy {
		return &v1beta1.ImageTagPullPolicy{BackoffLimit: &retries, TimeoutSeconds: &timeout}
	}
	one, two := registry.Credentials{Username: "one"}, registry.Credentials{Username: "two"}
	cases := map[string]struct {
		task        v1beta1.ImageTagSpec
		deadline    time.Duration
		present     bool
		here        bool
		takes       time.Duration
		answers     []error
		credentials []registry.Credentials
		unread      error
		sealed      int // how often the credentials can't be opened

		id    string
		want  string // part of the error
		began []int  // seconds at which pulls were asked for
		used  []string
		told  int
	}{
		"an image that is there is not pulled":                                 {present: true, id: "sha256:0"},
		"but it is with policy Always":                                         {task: v1beta1.ImageTagSpec{ImagePullPolicy: v1beta1.PullAlways}, present: true, answers: []error{nil}, id: "sha256:1", began: []int{0}, used: []string{""}},
		"an image is pulled":                                                   {answers: []error{nil}, id: "sha256:1", began: []int{0}, used: []string{""}},
		"pauses between attempts double":                                       {answers: []error{unknown}, want: "manifest unknown", began: []int{0, 1, 3, 7}, used: []string{"", "", "", ""}, told: 3},
		"as many attempts as the limit allows, and one":                        {task: v1beta1.ImageTagSpec{PullPolicy: limits(1, 60)}, answers: []error{unknown}, want: "manifest unknown", began: []int{0, 1}, used: []string{"", ""}, told: 1},
		"a later attempt may do":                                               {answers: []error{unknown, nil}, id: "sha256:1", began: []int{0, 1}, used: []string{"", ""}, told: 1},
		"a runtime that is away costs no attempt":                              {task: v1beta1.ImageTagSpec{PullPolicy: limits(0, 60)}, answers: []error{away, away, nil}, id: "sha256:1", began: []int{0, 2, 4}, used: []string{"", "", ""}, told: 2},
		"one that answers, and whose pulls are refused as if it did not, does": {task: v1beta1.ImageTagSpec{PullPolicy: limits(1, 60)}, here: true, answers: []error{away}, want: "connection refused", began: []int{0, 2, 3}, used: []string{"", "", ""}, told: 2},
		"credentials that are refused do not hide that it is away":             {task: v1beta1.ImageTagSpec{PullPolicy: limits(0, 60)}, credentials: []registry.Credentials{one, two}, answers: []error{status.Error(codes.Unknown, "401"), away, nil}, id: "sha256:1", began: []int{0, 0, 2}, used: []string{"one", "two", "one"}, told: 1},
		"the deadline ends attempts and pauses":                                {task: v1beta1.ImageTagSpec{PullPolicy: limits(9, 60)}, deadline: 120 * time.Second, takes: time.Hour, answers: []error{unknown}, want: rules.MessageDeadline, began: []int{0, 61}, used: []string{"", ""}, told: 1},
		"the deadline comes in a pause":                                        {deadline: 2 * time.Second, answers: []error{unknown}, want: rules.MessageDeadline + ": manifest unknown", began: []int{0, 1}, used: []string{"", ""}, told: 2},
		"credentials are tried one after the other":                            {credentials: []registry.Credentials{one, two}, answers: []error{refused, nil}, id: "sha256:1", began: []int{0, 0}, used: []string{"one", "two"}},
		"with credentials, none is asked anonymously":                          {task: v1beta1.ImageTagSpec{PullPolicy: limits(0, 60)}, credentials: []registry.Credentials{one}, answers: []error{refused}, want: "401 Unauthorized", began: []int{0}, used: []string{"one"}},
		"credentials that are not sealed for it yet cost no attempt": {
			task: v1beta1.ImageTagSpec{PullPolicy: limits(0, 60)}, sealed: 3, credentials: []registry.Credentials{one}, answers: []error{nil},
			id: "sha256:1", began: []int{6}, used: []string{"one"}, told: 3,
		},
		"Secrets that can't be read are told in the end":  {task: v1beta1.ImageTagSpec{PullPolicy: limits(0, 60)}, unread: errors.New("reading Secret a/b: forbidden"), answers: []error{refused}, want: "401 Unauthorized\nreading Secret a/b: forbidden", began: []int{0}, used: []string{""}},
		"and do not matter for one that opens without it": {unread: errors.New("reading Secret a/b: forbidden"), answers: []error{nil}, id: "sha256:1", began: []int{0}, used: []string{""}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &fakeRuntime{now: time.Unix(0, 0), takes: tc.takes, present: map[string]string{}, answers: tc.answers, here: tc.here}
			if tc.present {
				r.present["nginx:1"] = "sha256:0"
			}
			told := 0
			p := puller{
				runtime: func() (images, error) { return r, nil },
				credentials: func(context.Context, Task) ([]registry.Credentials, error) {
					tc.sealed--
					if tc.sealed >= 0 {
						return nil, errSealed
					}
					return tc.credentials, tc.unread
				},
				now:   func() time.Time { return r.now },
				sleep: func(_ context.Context, d time.Duration) { r.now = r.now.Add(d) },
			}
			one := round{
				task:   func() Task { return Task{Round: Round{Repository: "nginx", Tag: "1"}, Spec: tc.task} },
				failed: func(string) { told++ },
				yield:  func() <-chan struct{} { return nil }, pause: p.sleep,
			}
			if tc.deadline > 0 {
				one.deadline = r.now.Add(tc.deadline)
			}
			id, err := p.run(t.Context(), one)
			if id != tc.id || (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("run() = %q, %v, want %q, %q", id, err, tc.id, tc.want)
			}
			var began []int
			for _, d := range r.began {
				began = append(began, int(d.Seconds()))
			}
			var used []string
			for _, pull := range r.pulls {
				used = append(used, ptr.Deref(pull.Credentials, registry.Credentials{}).Username)
			}
			if diff := cmp.Diff(tc.began, began); diff != "" {
				t.Errorf("pulls at (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.used, used); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
			if told != tc.told {
				t.Errorf("told of %d failed attempts, want %d", told, tc.told)
			}
		})
	}
}

func TestPullRequest(t *testing.T) {
	r := &fakeRuntime{now: time.Unix(0, 0), present: map[string]string{}, answers: []error{nil}}
	sandbox := &v1beta1.SandboxConfig{Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "b"}}
	p := puller{
		runtime:     func() (images, error) { return r, nil },
		credentials: func(context.Context, Task) ([]registry.Credentials, error) { return nil, nil },
		now:         time.Now,
	}
	task := Task{Round: Round{Repository: "nginx", Tag: "1"}, Sandbox: sandbox}
	one := round{
		task: func() Task { return task }, failed: func(string) {}, yield: func() <-chan struct{} { return nil }, pause: p.sleep,
	}
	if _, err := p.run(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	want := []cri.Pull{{
		Image: "nginx:1", Labels: map[string]string{"l": "1"},
		Annotations: map[string]string{"a": "b", "apps.kruise.io/pulling-image-by": "kruise-daemon"},
	}}
	if diff := cmp.Diff(want, r.pulls); diff != "" {
		t.Errorf("pulls (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "b"}, sandbox.Annotations); diff != "" {
		t.Errorf("the NodeImage was changed (-want +got):\n%s", diff)
	}
}
