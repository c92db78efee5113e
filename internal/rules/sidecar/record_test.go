package sidecar

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/keys"
)

func TestRecordsAreWrittenAsOthersReadThem(t *testing.T) {
	p := &corev1.Pod{}
	SetRecord(p, keys.SidecarSetHash, Record{
		UpdateTimestamp: metav1.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC), Hash: "4zbd", SidecarSetName: "log",
		SidecarList: []string{"sidecar1"}, ControllerRevision: "log-cf4bf7796",
	})
	want := `{"log":{"updateTimestamp":"2026-01-05T08:00:00Z","hash":"4zbd","sidecarSetName":"log","sidecarList":["sidecar1"],"controllerRevision":"log-cf4bf7796"}}`
	if diff := cmp.Diff(want, p.Annotations[keys.SidecarSetHash]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRecordsOfAllFormsAreRead(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want Records
	}{
		"none":            {"", Records{}},
		"the oldest form": {`{"log":"4zbd"}`, Records{"log": {Hash: "4zbd", SidecarSetName: "log"}}},
		"the present form": {`{"log":{"hash":"4zbd","sidecarSetName":"log","sidecarList":["a"]}}`,
			Records{"log": {Hash: "4zbd", SidecarSetName: "log", SidecarList: []string{"a"}}}},
		"both": {`{"log":{"hash":"a","sidecarSetName":"log"},"old":"b"}`,
			Records{"log": {Hash: "a", SidecarSetName: "log"}, "old": {Hash: "b", SidecarSetName: "old"}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{}
			if tc.text != "" {
				p.Annotations = map[string]string{keys.SidecarSetHash: tc.text}
			}
			got, err := RecordsIn(p, keys.SidecarSetHash)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{keys.SidecarSetHash: "not JSON"}}}
	if _, err := RecordsIn(p, keys.SidecarSetHash); err == nil {
		t.Error("what is not JSON is read")
	}
}

func TestTheInjectedListIsSorted(t *testing.T) {
	p := &corev1.Pod{}
	AddInjected(p, "log")
	AddInjected(p, "envoy", "log")
	if got := p.Annotations[keys.SidecarSetInjectedList]; got != "envoy,log" {
		t.Errorf("got %q", got)
	}
}

// TestAnUpgradeConvertsTheOldestForm: both notes are in the present form after it.
func TestAnUpgradeConvertsTheOldestForm(t *testing.T) {
	target := targetOf(t, "{}")
	p := podOf(target, 0, old)
	p.Annotations[keys.SidecarSetHash] = `{"log":"older"}`
	p.Annotations[keys.SidecarSetHashWithoutImage] = `{"log":"` + target.Hashes.WithoutImage + `"}`
	if s := target.Classify(p, now); !s.Upgradable || s.Updated {
		t.Fatalf("upgradable %t, updated %t", s.Upgradable, s.Updated)
	}
	target.Upgrade(p, now)
	for key, want := range map[string]string{keys.SidecarSetHash: target.Hashes.Full, keys.SidecarSetHashWithoutImage: target.Hashes.WithoutImage} {
		records, err := RecordsIn(p, key)
		if record := records["log"]; err != nil || record.Hash != want || record.SidecarSetName != "log" || p.Annotations[key][:9] != `{"log":{"` {
			t.Errorf("%s is %s (%v)", key, p.Annotations[key], err)
		}
	}
}

// TestNotesThatCantBeRead: whoever may write to a Pod can write anything where notes are kept, JSON's null as well. It counts as no note, and is written
// anew; it must stop nothing, least of all the update of other Pods.
func TestNotesThatCantBeRead(t *testing.T) {
	at := At{Now: now, Exists: func(string) bool { return true }}
	for name, tc := range map[string]struct {
		key   string
		write func(*corev1.Pod)
		want  string
	}{
		"what ran before": {
			keys.SidecarSetInPlaceUpdateState, func(p *corev1.Pod) { setState(p, "log", State{Revision: "a"}) },
			`{"log":{"revision":"a","updateTimestamp":null,"lastContainerStatuses":null}}`,
		},
		"which container works": {keys.SidecarSetWorkingHotUpgradeContainer, func(p *corev1.Pod) { SetWorking(p, "envoy", "envoy-1") }, `{"envoy":"envoy-1"}`},
		"the hash": {
			keys.SidecarSetHash, func(p *corev1.Pod) { SetRecord(p, keys.SidecarSetHash, Record{SidecarSetName: "log", Hash: "a"}) },
			`{"log":{"updateTimestamp":null,"hash":"a","sidecarSetName":"log","sidecarList":null}}`,
		},
		"whether it can be updated": {string(Upgradable), func(p *corev1.Pod) { SetUpgradable(p, "log", true, at) }, `{"log":true}`},
	} {
		for _, text := range []string{"null", "not JSON", `{"other":[1]}`, "[]"} {
			t.Run(name+", "+text, func(t *testing.T) {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{tc.key: text}}}
				p.Status.Conditions = []corev1.PodCondition{{Type: Upgradable, Message: text}}
				tc.write(p)
				got := p.Annotations[tc.key]
				if tc.key == string(Upgradable) {
					got = p.Status.Conditions[0].Message
				}
				if got != tc.want {
					t.Errorf("got %s, want %s", got, tc.want)
				}
			})
		}
	}
}

// TestNotesAreReadAlike holds the look at the text alone against reading the JSON, in all forms that records have.
func TestNotesAreReadAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		name, hash := rapid.SampledFrom([]string{"log", "log-2", "a.log", "hash"}), rapid.SampledFrom([]string{"v1", "v2", "v12"})
		records := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "records") {
			record := Record{
				UpdateTimestamp: metav1.NewTime(now), Hash: hash.Draw(t, "hash"), SidecarSetName: name.Draw(t, "set"),
				SidecarList: rapid.SliceOf(name).Draw(t, "sidecars"), ControllerRevision: hash.Draw(t, "revision"),
			}
			records[record.SidecarSetName] = record
			if rapid.Bool().Draw(t, "oldest form") {
				records[record.SidecarSetName] = record.Hash
			}
		}
		write(p, keys.SidecarSetHash, records)
		if rapid.Bool().Draw(t, "spaced") {
			p.Annotations[keys.SidecarSetHash] = strings.ReplaceAll(p.Annotations[keys.SidecarSetHash], `":`, `" :`)
		}
		set, wanted := name.Draw(t, "looked for"), hash.Draw(t, "looked for hash")
		record, err := recordIn(p, keys.SidecarSetHash, set)
		want := err == nil && record.Hash == wanted
		if got := hasHash(p, keys.SidecarSetHash, set, wanted); got != want {
			t.Fatalf("%s: SidecarSet %s with hash %s is noted: %t, want %t", p.Annotations[keys.SidecarSetHash], set, wanted, got, want)
		}
	})
}
