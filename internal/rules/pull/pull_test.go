package pull

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newJob(name string, change func(*v1beta1.ImagePullJob)) *v1beta1.ImagePullJob {
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	if change != nil {
		change(job)
	}
	return job
}

func wants(job *v1beta1.ImagePullJob, repository, tag string) Want {
	return Want{Image: Reference{Repository: repository, Tag: tag}, Job: job, Extra: 300 * time.Second, Now: now}
}

func ptr[T any](v T) *T { return &v }

// says prints a NodeImage as repository:tag#version=owners.
func says(n *v1beta1.NodeImage) string {
	var out []string
	for _, repository := range []string{"nginx", "redis"} {
		for _, tag := range n.Spec.Images[repository].Tags {
			var owners []string
			for _, o := range tag.OwnerReferences {
				owners = append(owners, o.Name)
			}
			out = append(out, fmt.Sprintf("%s:%s#%d=%s", repository, tag.Tag, tag.Version, strings.Join(owners, "+")))
		}
	}
	return strings.Join(out, " ")
}

// answered returns a NodeImage whose node has answered the round of a tag.
func answered(n *v1beta1.NodeImage, repository, tag string, phase v1beta1.ImagePullPhase) *v1beta1.NodeImage {
	n = n.DeepCopy()
	status := v1beta1.ImageTagStatus{Tag: tag, Phase: phase}
	for _, t := range n.Spec.Images[repository].Tags {
		if t.Tag == tag {
			status.Version = t.Version
		}
	}
	if phase == v1beta1.ImagePhaseSucceeded || phase == v1beta1.ImagePhaseFailed {
		status.CompletionTime = ptr(metav1.NewTime(now))
	}
	if n.Status.ImageStatuses == nil {
		n.Status.ImageStatuses = map[string]v1beta1.ImageStatus{}
	}
	n.Status.ImageStatuses[repository] = v1beta1.ImageStatus{Tags: []v1beta1.ImageTagStatus{status}}
	return n
}

func mustAsk(t *testing.T, w Want, n *v1beta1.NodeImage) *v1beta1.NodeImage {
	t.Helper()
	before := n.DeepCopy()
	after, err := w.Request(n)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, n); diff != "" {
		t.Errorf("asking changed its source (-before +after):\n%s", diff)
	}
	return after
}

func TestPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		change            func(*v1beta1.ImagePullJob)
		timeout, retries  int32
		ttlFrom, ttlBelow int32
		deadline          *int64
	}{
		"the defaults": {nil, 600, 3, 2100, 2400, nil},
		"a negative number of retries counts as the default": {func(j *v1beta1.ImagePullJob) {
			j.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: ptr(int32(60)), BackoffLimit: ptr(int32(-1))}
		}, 60, 3, 480, 780, nil},
		"the time to live of the job counts": {func(j *v1beta1.ImagePullJob) {
			j.Spec.CompletionPolicy = v1beta1.CompletionPolicy{TTLSecondsAfterFinished: ptr(int32(1000)), ActiveDeadlineSeconds: ptr(int64(700))}
		}, 600, 3, 1300, 1600, ptr(int64(700))},
		"or else its deadline": {func(j *v1beta1.ImagePullJob) {
			j.Spec.CompletionPolicy.ActiveDeadlineSeconds = ptr(int64(700))
		}, 600, 3, 1000, 1300, ptr(int64(700))},
		"a job that never completes repeats about once a day": {func(j *v1beta1.ImagePullJob) {
			j.Spec.CompletionPolicy.Type = v1beta1.NeverComplete
		}, 600, 3, 86400 - 600, 86400 + 600, ptr(int64(1800))},
		"an attempt may take longer than half an hour": {func(j *v1beta1.ImagePullJob) {
			j.Spec.CompletionPolicy.Type = v1beta1.NeverComplete
			j.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: ptr(int32(7200))}
		}, 7200, 3, 86400 - 600, 86400 + 600, ptr(int64(7200))},
		"a deadline too long for a duration is the longest": {func(j *v1beta1.ImagePullJob) {
			j.Spec.CompletionPolicy.ActiveDeadlineSeconds = ptr(int64(math.MaxInt64))
		}, 600, 3, 1<<31 - 1, -1, ptr(int64(1<<31 - 1))},
		"a time too long for the field is the longest": {func(j *v1beta1.ImagePullJob) {
			j.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr(int32(1<<31 - 1))
		}, 600, 3, 1<<31 - 1, -1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 50 {
				got := Policy(newJob("job", tc.change), 300*time.Second, fmt.Sprint("node-", i))
				ttl := *got.TTLSecondsAfterFinished
				if *got.TimeoutSeconds != tc.timeout || *got.BackoffLimit != tc.retries || ttl < tc.ttlFrom || tc.ttlBelow > 0 && ttl >= tc.ttlBelow {
					t.Fatalf("timeout %d, retries %d, kept for %d, want %d, %d, %d..%d", *got.TimeoutSeconds, *got.BackoffLimit, ttl, tc.timeout, tc.retries, tc.ttlFrom, tc.ttlBelow)
				}
				if diff := cmp.Diff(tc.deadline, got.ActiveDeadlineSeconds); diff != "" {
					t.Fatalf("deadline (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestRequest(t *testing.T) {
	one, two := newJob("one", nil), newJob("two", nil)
	empty := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	asked := mustAsk(t, wants(one, "nginx", "b"), empty)
	forgotten := empty.DeepCopy()
	forgotten.Status = answered(asked, "nginx", "b", v1beta1.ImagePhaseSucceeded).Status
	for name, tc := range map[string]struct {
		from *v1beta1.NodeImage
		by   Want
		want string
	}{
		"the first round is number 0":                 {empty, wants(one, "nginx", "b"), "nginx:b#0=one"},
		"a round after one that the node remembers":   {forgotten, wants(one, "nginx", "b"), "nginx:b#1=one"},
		"tags are sorted":                             {asked, wants(two, "nginx", "a"), "nginx:a#0=two nginx:b#0=one"},
		"another job for the same tag starts a round": {asked, wants(two, "nginx", "b"), "nginx:b#1=one+two"},
		"another image of the same job ends the old":  {asked, wants(one, "redis", "7"), "redis:7#0=one"},
		"a shared tag stays for the other job":        {mustAsk(t, wants(two, "nginx", "b"), asked), wants(one, "redis", "7"), "nginx:b#1=two redis:7#0=one"},
		"a job that asks again starts a round":        {answered(asked, "nginx", "b", v1beta1.ImagePhaseSucceeded), wants(one, "nginx", "b"), "nginx:b#1=one"},
	} {
		t.Run(name, func(t *testing.T) {
			got := mustAsk(t, tc.by, tc.from)
			if diff := cmp.Diff(tc.want, says(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if state := tc.by.StateOn(got); state.State != Pulling || state.Stale || state.LacksCredentials {
				t.Errorf("the node is seen as %+v, want it to pull", state)
			}
		})
	}
}

func TestAskTakesTheLongerTimesOfTwoJobs(t *testing.T) {
	limits := func(timeout, retries, ttl int32, deadline *int64) func(*v1beta1.ImagePullJob) {
		return func(j *v1beta1.ImagePullJob) {
			j.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: &timeout, BackoffLimit: &retries}
			j.Spec.CompletionPolicy.TTLSecondsAfterFinished, j.Spec.CompletionPolicy.ActiveDeadlineSeconds = &ttl, deadline
		}
	}
	one, two := newJob("one", limits(60, 1, 5000, ptr(int64(100)))), newJob("two", limits(40, 7, 10, ptr(int64(200))))
	first := mustAsk(t, wants(one, "nginx", "b"), &v1beta1.NodeImage{})
	before := first.Spec.Images["nginx"].Tags[0].PullPolicy
	got := mustAsk(t, wants(two, "nginx", "b"), first).Spec.Images["nginx"].Tags[0].PullPolicy
	want := &v1beta1.ImageTagPullPolicy{
		TimeoutSeconds: ptr(int32(60)), BackoffLimit: ptr(int32(7)), TTLSecondsAfterFinished: before.TTLSecondsAfterFinished, ActiveDeadlineSeconds: ptr(int64(200)),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSight(t *testing.T) {
	job, never := newJob("job", nil), newJob("job", func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.Type = v1beta1.NeverComplete })
	w := wants(job, "nginx", "1")
	asked := mustAsk(t, w, &v1beta1.NodeImage{})
	full := &v1beta1.NodeImage{Spec: v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{}}}
	for i := range v1beta1.MaxNodeImages {
		full.Spec.Images[fmt.Sprint("other-", i)] = v1beta1.ImageSpec{Tags: []v1beta1.ImageTagSpec{{Tag: "1"}}}
	}
	older := answered(asked, "nginx", "1", v1beta1.ImagePhaseSucceeded)
	older.Spec.Images["nginx"].Tags[0].Version = 5
	repeated := answered(mustAsk(t, wants(never, "nginx", "1"), &v1beta1.NodeImage{}), "nginx", "1", v1beta1.ImagePhaseSucceeded)
	again := now.Add(time.Duration(*repeated.Spec.Images["nginx"].Tags[0].PullPolicy.TTLSecondsAfterFinished) * time.Second)
	secret := w
	secret.Credentials, secret.Seal = Credentials{Owner: "job", version: "1", text: []byte("secret")}, plainly
	late := wants(never, "nginx", "1")
	late.Now = again
	for name, tc := range map[string]struct {
		want Want
		on   *v1beta1.NodeImage
		is   NodeState
	}{
		"a node that was not asked":             {w, &v1beta1.NodeImage{}, NodeState{State: NotRequested}},
		"one that has no room":                  {w, full, NodeState{State: NotRequested, Full: true}},
		"one that was":                          {w, asked, NodeState{State: Pulling}},
		"one that waits":                        {w, answered(asked, "nginx", "1", v1beta1.ImagePhaseWaiting), NodeState{State: Pulling}},
		"one that has it":                       {w, answered(asked, "nginx", "1", v1beta1.ImagePhaseSucceeded), NodeState{State: Succeeded}},
		"one that gave up":                      {w, answered(asked, "nginx", "1", v1beta1.ImagePhaseFailed), NodeState{State: Failed}},
		"an answer of an older round is none":   {w, older, NodeState{State: Pulling}},
		"a Secret that came later":              {secret, asked, NodeState{State: Pulling, LacksCredentials: true, LacksKey: true}},
		"which the node does not need any more": {secret, answered(asked, "nginx", "1", v1beta1.ImagePhaseSucceeded), NodeState{State: Succeeded, LacksKey: true}},
		"an image that is not wanted any more":  {wants(job, "redis", "7"), asked, NodeState{State: NotRequested, Stale: true}},
		"a job that repeats":                    {wants(never, "nginx", "1"), repeated, NodeState{State: Succeeded, RepeatAt: again}},
		"a job that repeats, a day later":       {late, repeated, NodeState{State: NotRequested}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.is, tc.want.StateOn(tc.on), cmpopts.IgnoreFields(NodeState{}, "Status")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := w.Request(full); err == nil {
		t.Error("a node without room was asked")
	}
	if state := secret.StateOn(secret.Reseal(asked)); state.LacksCredentials {
		t.Errorf("after sealing, the node is seen as %+v", state)
	}
}

func TestCleanUp(t *testing.T) {
	asked := mustAsk(t, wants(newJob("two", nil), "nginx", "b"), mustAsk(t, wants(newJob("one", nil), "nginx", "b"), &v1beta1.NodeImage{}))
	done := answered(asked, "nginx", "b", v1beta1.ImagePhaseSucceeded)
	ttl := time.Duration(*asked.Spec.Images["nginx"].Tags[0].PullPolicy.TTLSecondsAfterFinished) * time.Second
	timeless := asked.DeepCopy()
	timeless.Spec.Images["nginx"].Tags[0].CreatedAt = nil
	byHand := done.DeepCopy()
	byHand.Spec.Images["nginx"].Tags[0].OwnerReferences = nil
	for name, tc := range map[string]struct {
		image  *v1beta1.NodeImage
		owners map[types.UID]OwnerState
		at     time.Time
		want   string // what is left; "as it was" for no change
		next   time.Time
	}{
		"both jobs run":                             {asked, map[types.UID]OwnerState{"one": Running, "two": Running}, now, "as it was", time.Time{}},
		"one job is gone":                           {asked, map[types.UID]OwnerState{"two": Running}, now, "nginx:b#1=two", time.Time{}},
		"both are":                                  {asked, nil, now, "", time.Time{}},
		"both have completed":                       {done, map[types.UID]OwnerState{"one": Done, "two": Done}, now, "as it was", now.Add(ttl)},
		"both have, long ago":                       {done, map[types.UID]OwnerState{"one": Done, "two": Done}, now.Add(ttl), "", time.Time{}},
		"one goes on, long after":                   {done, map[types.UID]OwnerState{"one": Done, "two": Running}, now.Add(ttl), "as it was", time.Time{}},
		"both have, but the node has not":           {asked, map[types.UID]OwnerState{"one": Done, "two": Done}, now.Add(24 * time.Hour), "as it was", time.Time{}},
		"a tag that nobody knows the age of":        {timeless, map[types.UID]OwnerState{"one": Running, "two": Running}, now, "", time.Time{}},
		"a tag of a user's stays":                   {byHand, nil, now, "as it was", now.Add(ttl)},
		"a tag of a user's, after its time to live": {byHand, nil, now.Add(ttl), "", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, next := CleanUp(tc.image, References{Owner: func(r corev1.ObjectReference) OwnerState { return tc.owners[r.UID] }, SecretGone: none}, tc.at)
			left := "as it was"
			if got != nil {
				left = says(got)
				if left == "" && len(got.Spec.Images) > 0 {
					t.Error("a repository without tags is left")
				}
			}
			if left != tc.want || !next.Equal(tc.next) {
				t.Errorf("left %q, next %s, want %q, %s", left, next, tc.want, tc.next)
			}
		})
	}
}

func none(v1beta1.ReferenceObject) bool { return false }

func TestSecretsThatAreGoneAreTakenOff(t *testing.T) {
	n := mustAsk(t, wants(newJob("job", nil), "nginx", "1"), &v1beta1.NodeImage{})
	image := n.Spec.Images["nginx"]
	image.PullSecrets = []v1beta1.ReferenceObject{
		{Namespace: "config", Name: "gone"}, {Namespace: "config", Name: "here"}, {Namespace: "config", Name: "gone", Mode: v1beta1.ReferenceBatch},
	}
	n.Spec.Images["nginx"] = image
	refs := References{
		Owner:      func(corev1.ObjectReference) OwnerState { return Running },
		SecretGone: func(r v1beta1.ReferenceObject) bool { return r.Name == "gone" },
	}
	got, _ := CleanUp(n, refs, now)
	if got == nil {
		t.Fatal("nothing was taken off")
	}
	if diff := cmp.Diff(image.PullSecrets[1:], got.Spec.Images["nginx"].PullSecrets); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again, _ := CleanUp(got, refs, now); again != nil {
		t.Errorf("taken off once more: %+v", again.Spec)
	}
}

func TestTimedOut(t *testing.T) {
	limited := newJob("job", func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.ActiveDeadlineSeconds = ptr(int64(600)) })
	asked := mustAsk(t, wants(newJob("job", nil), "nginx", "b"), &v1beta1.NodeImage{})
	bounded := mustAsk(t, wants(limited, "nginx", "b"), &v1beta1.NodeImage{})
	for name, tc := range map[string]struct {
		image   *v1beta1.NodeImage
		after   time.Duration
		message string
		next    time.Duration
	}{
		"a node that has not had ten minutes":       {asked, ResponseTimeout - time.Second, "", ResponseTimeout},
		"one that has":                              {asked, ResponseTimeout, MessageNoResponse, 0},
		"one that pulls":                            {answered(asked, "nginx", "b", v1beta1.ImagePhasePulling), 24 * time.Hour, "", 0},
		"one that pulls, with a deadline":           {answered(bounded, "nginx", "b", v1beta1.ImagePhasePulling), 600*time.Second + ResponseTimeout - time.Second, "", 600*time.Second + ResponseTimeout},
		"one that pulls for longer than allowed":    {answered(bounded, "nginx", "b", v1beta1.ImagePhasePulling), 600*time.Second + ResponseTimeout, MessageDeadline, 0},
		"one that has finished before its deadline": {answered(bounded, "nginx", "b", v1beta1.ImagePhaseSucceeded), 24 * time.Hour, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			at := now.Add(tc.after)
			found, next := FindTimedOut(tc.image, at)
			want := time.Time{}
			if tc.next > 0 {
				want = now.Add(tc.next)
			}
			if !next.Equal(want) {
				t.Errorf("next is %s, want %s", next, want)
			}
			if tc.message == "" {
				if len(found) > 0 {
					t.Errorf("found %+v, want nothing", found)
				}
				return
			}
			if len(found) != 1 || found[0].Message != tc.message {
				t.Fatalf("found %+v, want %q", found, tc.message)
			}
			failed := Fail(tc.image, found, at)
			status := StatusOf(failed, "nginx", &failed.Spec.Images["nginx"].Tags[0])
			if status == nil || status.Phase != v1beta1.ImagePhaseFailed || status.Message != tc.message || !status.CompletionTime.Time.Equal(at) || failed.Status.Failed != 1 || failed.Status.Desired != 1 {
				t.Errorf("status is %+v, %+v", status, failed.Status)
			}
			if again, _ := FindTimedOut(failed, at.Add(time.Hour)); len(again) > 0 {
				t.Errorf("it fails once more: %+v", again)
			}
		})
	}
}
