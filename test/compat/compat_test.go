package compat

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/claim"
	"github.com/seed-69ecc383/kruise/internal/rules/pod"
	"github.com/seed-69ecc383/kruise/internal/rules/revision"
)

func read[T any](t *testing.T, name string) T {
	t.Helper()
	var into T
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &into); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	return into
}

// compact takes out the white space that makes the recorded bytes readable.
func compact(t *testing.T, data []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// hashOf returns the hash that a recorded revision says it has; DaemonSets write it under another label.
func hashOf(rev appsv1.ControllerRevision) string {
	if hash, ok := rev.Labels[keys.RevisionHash]; ok {
		return hash
	}
	return rev.Labels[appsv1.ControllerRevisionHashLabelKey]
}

func TestRecordedRevisionsAreWrittenAgainToTheByte(t *testing.T) {
	for _, rev := range read[[]appsv1.ControllerRevision](t, "revisions.json") {
		t.Run(rev.Name, func(t *testing.T) {
			template, err := revision.Template(&rev)
			if err != nil {
				t.Fatal(err)
			}
			data, err := revision.Data(template)
			if err != nil {
				t.Fatal(err)
			}
			want := compact(t, rev.Data.Raw)
			if diff := cmp.Diff(want, string(data)); diff != "" {
				t.Errorf("bytes (-recorded +ours):\n%s", diff)
			}
			if isDaemonSet := rev.OwnerReferences[0].Kind == "DaemonSet"; isDaemonSet {
				return // its hash is of the template, as the native kind's is
			}
			if got := revision.Hash(data, 0); got != hashOf(rev) {
				t.Errorf("hash is %s, recorded is %s", got, hashOf(rev))
			}
		})
	}
}

func TestRecordedCloneSetsKeepTheirRevision(t *testing.T) {
	stored := map[string]*appsv1.ControllerRevision{}
	for _, rev := range read[[]appsv1.ControllerRevision](t, "revisions.json") {
		stored[rev.Name] = &rev
	}
	for _, set := range read[[]v1beta1.CloneSet](t, "clonesets.json") {
		t.Run(set.Status.UpdateRevision, func(t *testing.T) {
			candidate, err := revision.New(revision.Owner{
				Name: set.Name, Namespace: set.Namespace, Annotations: set.Annotations,
				Reference: *metav1.NewControllerRef(&set, v1beta1.GroupVersion.WithKind("CloneSet")),
			}, &set.Spec.Template, *set.Status.CollisionCount)
			if err != nil {
				t.Fatal(err)
			}
			recorded := stored[set.Status.UpdateRevision]
			if candidate.Name != recorded.Name {
				t.Errorf("revision is named %s, want %s", candidate.Name, recorded.Name)
			}
			if diff := cmp.Diff(recorded.Labels[keys.RevisionHash], candidate.Labels[keys.RevisionHash]); diff != "" {
				t.Errorf("label with the hash (-recorded +ours):\n%s", diff)
			}
			for key, value := range set.Spec.Template.Labels {
				if recorded.Labels[key] != value || candidate.Labels[key] != value {
					t.Errorf("label %s is %q in the record and %q in ours, want %q in both", key, recorded.Labels[key], candidate.Labels[key], value)
				}
			}
			if diff := cmp.Diff(recorded.OwnerReferences, candidate.OwnerReferences); diff != "" {
				t.Errorf("owner (-recorded +ours):\n%s", diff)
			}
			found := revision.Resolve([]*appsv1.ControllerRevision{recorded}, candidate)
			if found.Verb != revision.Reuse {
				t.Errorf("the revision would be written: %s %s", found.Verb, found.Update.Name)
			}
			if got, want := claim.TemplatesHash(set.Spec.VolumeClaimTemplates), recorded.Annotations[keys.RevisionClaimTemplatesHash]; got != want {
				t.Errorf("hash of the claim templates is %q, recorded is %q", got, want)
			}
		})
	}
}

func TestTemplatesHaveTheBytesOfOlderLibraries(t *testing.T) {
	type golden struct {
		Template   corev1.PodTemplateSpec
		Data, Hash string
	}
	for name, tc := range read[map[string]golden](t, "templates.json") {
		t.Run(name, func(t *testing.T) {
			data, err := revision.Data(&tc.Template)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.Data, string(data)); diff != "" {
				t.Errorf("bytes (-want +got):\n%s", diff)
			}
			if got := revision.Hash(data, 0); got != tc.Hash {
				t.Errorf("hash is %s, want %s", got, tc.Hash)
			}
		})
	}
}

func TestRecordedClaimsAreThoseThatPodsGetToday(t *testing.T) {
	recorded := read[struct {
		Claims []*corev1.PersistentVolumeClaim
		Pods   []*corev1.Pod
	}](t, "claims.json")
	set := cloneSet(t, "sample-data")
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(pod.OwnershipOf(set.UID, selector, recorded.Pods).Owned); got != len(recorded.Pods) || got == 0 {
		t.Errorf("%d of %d recorded Pods belong to their CloneSet", got, len(recorded.Pods))
	}
	used := sets.New[string]()
	for _, p := range recorded.Pods {
		id := claim.InstanceID(p, set.Name)
		used.Insert(id)
		mine := claim.Of(id, recorded.Claims)
		ours := claim.ForPod(claim.Owner{
			Name: set.Name, Namespace: set.Namespace, SelectorMatchLabels: set.Spec.Selector.MatchLabels,
			Reference: *metav1.NewControllerRef(&set, v1beta1.GroupVersion.WithKind("CloneSet")),
		}, id, set.Spec.VolumeClaimTemplates)
		if len(mine) != 1 || len(ours) != 1 {
			t.Fatalf("Pod %s has %d claims and would get %d, want 1 and 1", p.Name, len(mine), len(ours))
		}
		type visible struct {
			Name, Namespace string
			Labels          map[string]string
			Owners          []metav1.OwnerReference
		}
		of := func(c *corev1.PersistentVolumeClaim) visible {
			return visible{Name: c.Name, Namespace: c.Namespace, Labels: c.Labels, Owners: c.OwnerReferences}
		}
		if diff := cmp.Diff(of(mine[0]), of(ours[0])); diff != "" {
			t.Errorf("claim of %s (-recorded +ours):\n%s", p.Name, diff)
		}
		mounted := &corev1.Pod{}
		claim.Mount(mounted, set.Name, id, set.Spec.VolumeClaimTemplates)
		if diff := cmp.Diff(p.Spec.Volumes, mounted.Spec.Volumes); diff != "" {
			t.Errorf("volumes of %s (-recorded +ours):\n%s", p.Name, diff)
		}
	}
	if got := claim.Reusable(recorded.Claims, used); len(got) > 0 {
		t.Errorf("claims that Pods use are offered to others: %v", got)
	}
}

// cloneSet returns the first record of the CloneSet of that name.
func cloneSet(t *testing.T, name string) v1beta1.CloneSet {
	t.Helper()
	for _, set := range read[[]v1beta1.CloneSet](t, "clonesets.json") {
		if set.Name == name {
			return set
		}
	}
	t.Fatalf("there is no record of %s", name)
	return v1beta1.CloneSet{}
}
