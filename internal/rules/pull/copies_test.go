package pull

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
)

func TestCopies(t *testing.T) {
	source := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: strings.Repeat("s", 253), Labels: map[string]string{"argocd": "mine"}, Annotations: map[string]string{"a": "b"}},
		Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{".dockerconfigjson": []byte("{}")}, Immutable: ptr(true),
	}
	key := types.NamespacedName{Namespace: "ns", Name: source.Name}
	first := WithReferences(NewCopy(source, "config", nil), []types.NamespacedName{{Namespace: "ns", Name: "b"}, {Namespace: "ns", Name: "a"}, {Namespace: "ns", Name: "b"}})
	if of, ok := SourceOf(first); !ok || of != key {
		t.Errorf("the copy is of %s, %t", of, ok)
	}
	if len(first.Name) != 253 || len(first.Labels) > 0 || first.Type != source.Type || !*first.Immutable || string(first.Data[".dockerconfigjson"]) != "{}" {
		t.Errorf("the copy is %+v", first)
	}
	want := map[string]string{keys.PullSecretSource: key.String(), keys.PullSecretReferences: "ns/a,ns/b", keys.PullSecretMode: "batch"}
	if diff := cmp.Diff(want, first.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]types.NamespacedName{{Namespace: "ns", Name: "a"}, {Namespace: "ns", Name: "b"}}, ReferencesOf(first)); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	if again := NewCopy(source, "config", nil); again.Name != first.Name {
		t.Errorf("the name is %s once and %s again", first.Name, again.Name)
	}
	if other := NewCopy(source, "config", []*corev1.Secret{first}); other.Name == first.Name {
		t.Error("the name of another Secret was taken")
	}
	if CopyOf(key, []*corev1.Secret{source, first}) != first || CopyOf(types.NamespacedName{Namespace: "ns", Name: "x"}, []*corev1.Secret{first}) != nil {
		t.Error("the copy was not found by its source")
	}
}

func TestChildren(t *testing.T) {
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "list", UID: "u"}}
	list.Spec.Images = []string{"a", "b"}
	list.Spec.CompletionPolicy.TTLSecondsAfterFinished = ptr(int32(5))
	child := NewChild(list, "a")
	if child.Spec.CompletionPolicy.TTLSecondsAfterFinished != nil {
		t.Error("a job of a list is deleted on its own, and would be made again")
	}
	if !IsChild(list, child) || NewChild(list, "a").Name != child.Name || NewChild(list, "b").Name == child.Name {
		t.Errorf("the job is %+v", child)
	}
	unlabelled := child.DeepCopy()
	unlabelled.Labels = nil
	if !IsChild(list, unlabelled) {
		t.Error("a job without a hash is not known by what it says")
	}
	list.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: ptr(int32(7))}
	if IsChild(list, child) || IsChild(list, unlabelled) || NewChild(list, "a").Name == child.Name {
		t.Error("a job made from something else counts as the list's")
	}
}
