package pull

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func at(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(second, 0)} }

// nodeImage returns one that wants tags of nginx, and tells what is said of them.
func nodeImage(wanted []v1beta1.ImageTagSpec, said ...v1beta1.ImageTagStatus) *v1beta1.NodeImage {
	image := &v1beta1.NodeImage{}
	image.Spec.Images = map[string]v1beta1.ImageSpec{"nginx": {Tags: wanted}}
	image.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"nginx": {Tags: said}}
	return image
}

func TestImage(t *testing.T) {
	cases := map[string]struct {
		round Round
		want  string
	}{
		"a tag":                          {Round{Repository: "nginx", Tag: "1.27"}, "nginx:1.27"},
		"a tag of a registry with port":  {Round{Repository: "r.io:5000/a/b", Tag: "v1"}, "r.io:5000/a/b:v1"},
		"a digest is joined by the at":   {Round{Repository: "nginx", Tag: "sha256:0123"}, "nginx@sha256:0123"},
		"a digest with registry and all": {Round{Repository: "r.io:5000/a", Tag: "sha256:ab"}, "r.io:5000/a@sha256:ab"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.round.Image(); got != tc.want {
				t.Errorf("Image() = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestDue(t *testing.T) {
	tag := func(tag string, version, created int64) v1beta1.ImageTagSpec {
		return v1beta1.ImageTagSpec{Tag: tag, Version: version, CreatedAt: at(created)}
	}
	cases := map[string]struct {
		image *v1beta1.NodeImage
		want  []Round
		began time.Time
	}{
		"a tag that nothing is said of":    {image: nodeImage([]v1beta1.ImageTagSpec{tag("a", 0, 1)}), want: []Round{{"nginx", "a", 0}}},
		"the one that was asked for first": {image: nodeImage([]v1beta1.ImageTagSpec{tag("a", 0, 9), tag("b", 0, 5)}), want: []Round{{"nginx", "b", 0}, {"nginx", "a", 0}}},
		"not one that has ended": {
			image: nodeImage([]v1beta1.ImageTagSpec{tag("a", 1, 1)}, v1beta1.ImageTagStatus{Tag: "a", Version: 1, CompletionTime: at(2)}),
		},
		"not one that the manager has given up": {
			image: nodeImage([]v1beta1.ImageTagSpec{tag("a", 1, 1)}, v1beta1.ImageTagStatus{Tag: "a", Version: 1, Phase: v1beta1.ImagePhaseFailed, CompletionTime: at(2)}),
		},
		"a new version of one that has ended": {
			image: nodeImage([]v1beta1.ImageTagSpec{tag("a", 2, 1)}, v1beta1.ImageTagStatus{Tag: "a", Version: 1, CompletionTime: at(2)}),
			want:  []Round{{"nginx", "a", 2}},
		},
		"one that an earlier life has begun, from its beginning": {
			image: nodeImage([]v1beta1.ImageTagSpec{tag("a", 1, 1)}, v1beta1.ImageTagStatus{Tag: "a", Version: 1, StartTime: at(7)}),
			want:  []Round{{"nginx", "a", 1}}, began: time.Unix(7, 0),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []Round
			for _, task := range Due(tc.image) {
				got = append(got, task.Round)
				if !task.Began.Equal(tc.began) {
					t.Errorf("%s began at %s, want %s", task.Image(), task.Began, tc.began)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Due() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAPullTellsTheRuntimeWhatItsOwnerSays: what is said for a whole repository is said by users, for the tags that they list.
func TestAPullTellsTheRuntimeWhatItsOwnerSays(t *testing.T) {
	of := func(who string) *v1beta1.SandboxConfig {
		return &v1beta1.SandboxConfig{Labels: map[string]string{"of": who}}
	}
	image := nodeImage([]v1beta1.ImageTagSpec{
		{Tag: "a", SandboxConfig: of("a job"), OwnerReferences: []corev1.ObjectReference{{Namespace: "ns"}}},
		{Tag: "b", OwnerReferences: []corev1.ObjectReference{{Namespace: "ns"}, {Namespace: "other"}}},
		{Tag: "c"},
	})
	nginx := image.Spec.Images["nginx"]
	nginx.SandboxConfig = of("a user")
	image.Spec.Images["nginx"] = nginx
	got := map[string]*v1beta1.SandboxConfig{}
	for _, task := range Due(image) {
		got[task.Tag] = task.Sandbox
	}
	want := map[string]*v1beta1.SandboxConfig{"a": of("a job"), "b": nil, "c": of("a user")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what pulls tell (-want +got):\n%s", diff)
	}
}

func TestLimits(t *testing.T) {
	cases := map[string]struct {
		policy   *v1beta1.ImageTagPullPolicy
		timeout  time.Duration
		retries  int
		deadline time.Time
	}{
		"nothing is said": {nil, 600 * time.Second, 3, time.Time{}},
		"all is said": {
			&v1beta1.ImageTagPullPolicy{TimeoutSeconds: ptr.To[int32](5), BackoffLimit: ptr.To[int32](0), ActiveDeadlineSeconds: ptr.To[int64](60)},
			5 * time.Second, 0, time.Unix(160, 0),
		},
		"a negative limit counts as the default": {&v1beta1.ImageTagPullPolicy{BackoffLimit: ptr.To[int32](-1)}, 600 * time.Second, 3, time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			task := Task{Spec: v1beta1.ImageTagSpec{PullPolicy: tc.policy}}
			if got := task.Timeout(); got != tc.timeout {
				t.Errorf("Timeout() = %s, want %s", got, tc.timeout)
			}
			if got := task.Retries(); got != tc.retries {
				t.Errorf("Retries() = %d, want %d", got, tc.retries)
			}
			if got := task.Deadline(time.Unix(100, 0)); !got.Equal(tc.deadline) {
				t.Errorf("Deadline() = %s, want %s", got, tc.deadline)
			}
		})
	}
}

func TestReport(t *testing.T) {
	wanted := []v1beta1.ImageTagSpec{{Tag: "a", Version: 1}, {Tag: "b", Version: 0}}
	done := v1beta1.ImageTagStatus{Tag: "a", Version: 1, Phase: v1beta1.ImagePhaseSucceeded, Progress: 100, CompletionTime: at(5)}
	given := v1beta1.ImageTagStatus{Tag: "b", Phase: v1beta1.ImagePhaseFailed, Message: "node has not responded for a long time", CompletionTime: at(6)}
	pulling := v1beta1.ImageTagStatus{Tag: "b", Phase: v1beta1.ImagePhasePulling, StartTime: at(6)}
	waiting := v1beta1.ImageTagStatus{Tag: "a", Version: 1, Phase: v1beta1.ImagePhaseWaiting}
	cases := map[string]struct {
		image *v1beta1.NodeImage
		seen  map[Round]v1beta1.ImageTagStatus
		want  v1beta1.NodeImageStatus
	}{
		"nothing is known yet": {
			image: nodeImage(wanted), want: v1beta1.NodeImageStatus{Desired: 2},
		},
		"what is seen, and sorted": {
			image: nodeImage(wanted), seen: map[Round]v1beta1.ImageTagStatus{{"nginx", "b", 0}: pulling, {"nginx", "a", 1}: waiting},
			want: v1beta1.NodeImageStatus{Desired: 2, Pulling: 1, Waiting: 1, ImageStatuses: map[string]v1beta1.ImageStatus{
				"nginx": {Tags: []v1beta1.ImageTagStatus{waiting, pulling}},
			}},
		},
		"what was said before this life stays, and so does what the manager gave up": {
			image: nodeImage(wanted, done, given), seen: map[Round]v1beta1.ImageTagStatus{{"nginx", "b", 0}: pulling},
			want: v1beta1.NodeImageStatus{Desired: 2, Succeeded: 1, Failed: 1, ImageStatuses: map[string]v1beta1.ImageStatus{
				"nginx": {Tags: []v1beta1.ImageTagStatus{done, given}},
			}},
		},
		"a tag that is not wanted any more is left out, and an older version": {
			image: nodeImage(wanted[:1], given, v1beta1.ImageTagStatus{Tag: "a", Version: 0, CompletionTime: at(1)}),
			want:  v1beta1.NodeImageStatus{Desired: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sync := &v1beta1.SyncStatus{Status: v1beta1.SyncStatusSucceeded}
			tc.image.Status.FirstSyncStatus, tc.want.FirstSyncStatus = sync, sync
			if diff := cmp.Diff(tc.want, Report(tc.image, tc.seen), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Report() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPatchOf(t *testing.T) {
	said := func(repository, tag string) v1beta1.NodeImageStatus {
		return v1beta1.NodeImageStatus{Desired: 2, Waiting: 1, ImageStatuses: map[string]v1beta1.ImageStatus{
			"same": {Tags: []v1beta1.ImageTagStatus{{Tag: "1", StartTime: at(3)}}}, repository: {Tags: []v1beta1.ImageTagStatus{{Tag: tag}}},
		}}
	}
	sync := &v1beta1.SyncStatus{Status: v1beta1.SyncStatusSucceeded}
	cases := map[string]struct{ before, after v1beta1.NodeImageStatus }{
		"a repository comes and another goes": {said("old", "1"), said("new", "1")},
		"a tag changes":                       {said("a", "1"), said("a", "2")},
		"everything goes":                     {said("a", "1"), v1beta1.NodeImageStatus{}},
		"what others said stays": {
			v1beta1.NodeImageStatus{FirstSyncStatus: sync}, v1beta1.NodeImageStatus{FirstSyncStatus: sync, Desired: 1, Failed: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body, err := patchOf("7", tc.before, tc.after)
			if err != nil {
				t.Fatal(err)
			}
			before, err := json.Marshal(v1beta1.NodeImage{Status: tc.before})
			if err != nil {
				t.Fatal(err)
			}
			patched, err := jsonpatch.MergePatch(before, body)
			if err != nil {
				t.Fatal(err)
			}
			var got v1beta1.NodeImage
			if err := json.Unmarshal(patched, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.after, got.Status, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.ResourceVersion != "7" || strings.Contains(string(body), "startTime") {
				t.Errorf("the patch is %s, want it bound to resource version 7, and nothing of what is the same", body)
			}
		})
	}
}

func TestEnded(t *testing.T) {
	wanted := []v1beta1.ImageTagSpec{{Tag: "a"}, {Tag: "b"}}
	done := v1beta1.ImageTagStatus{Tag: "a", Phase: v1beta1.ImagePhaseSucceeded, CompletionTime: at(5)}
	begun := v1beta1.ImageTagStatus{Tag: "b", Phase: v1beta1.ImagePhasePulling}
	failed := v1beta1.ImageTagStatus{Tag: "b", Phase: v1beta1.ImagePhaseFailed, CompletionTime: at(5)}
	got := Ended(nodeImage(wanted, done, begun), nodeImage(wanted, done, failed))
	if diff := cmp.Diff(map[Round]v1beta1.ImageTagStatus{{"nginx", "b", 0}: failed}, got); diff != "" {
		t.Errorf("Ended() (-want +got):\n%s", diff)
	}
}
