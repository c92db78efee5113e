package simnode

import (
	"encoding/json"
	"testing"
	"time"
)

// asked is a NodeImage that asks for tags, given as JSON, of the repository a/b.
func asked(t *testing.T, tags string) nodeImage {
	t.Helper()
	var n nodeImage
	if err := json.Unmarshal([]byte(`{"spec":{"images":{"a/b":{"tags":`+tags+`}}}}`), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPullsTakeTheirTime(t *testing.T) {
	rules := DefaultRules()
	rules.Pull = 10 * time.Second
	for name, tc := range map[string]struct {
		tags    string
		takes   time.Duration
		phase   string
		message string
	}{
		"an image that is there":       {`[{"tag":"1"}]`, 10 * time.Second, "Succeeded", ""},
		"one by its digest":            {`[{"tag":"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}]`, 10 * time.Second, "Succeeded", ""},
		"one that is not, one attempt": {`[{"tag":"no-such","pullPolicy":{"backoffLimit":0}}]`, 10 * time.Second, "Failed", `failed to pull and unpack image "docker.io/a/b:no-such": not found`},
		// 10 + 1 + 10 + 2 + 10 seconds
		"one that is not, three attempts": {`[{"tag":"no-such","pullPolicy":{"backoffLimit":2}}]`, 33 * time.Second, "Failed", `failed to pull and unpack image "docker.io/a/b:no-such": not found`},
		"a registry that hangs":           {`[{"tag":"hang-pull","pullPolicy":{"backoffLimit":0,"timeoutSeconds":25}}]`, 25 * time.Second, "Failed", "context deadline exceeded"},
		"a deadline":                      {`[{"tag":"hang-pull","pullPolicy":{"timeoutSeconds":25,"activeDeadlineSeconds":40}}]`, 40 * time.Second, "Failed", "context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := newStorage(), asked(t, tc.tags)
			begin := time.Unix(1000, 0)
			var next time.Time
			if n.Status, next = s.answer(n, rules, begin); n.Status.Pulling != 1 || next.Sub(begin) != tc.takes {
				t.Fatalf("at first %+v, next in %s, want one pull of %s", n.Status, next.Sub(begin), tc.takes)
			}
			if n.Status, _ = s.answer(n, rules, next.Add(-time.Second)); n.Status.Pulling != 1 {
				t.Errorf("just before the end %+v, want one pull", n.Status)
			}
			n.Status, next = s.answer(n, rules, next)
			got := n.Status.ImageStatuses["a/b"].Tags[0]
			if got.Phase != tc.phase || got.Message != tc.message || !next.IsZero() || (got.ImageID != "") != (tc.phase == "Succeeded") {
				t.Errorf("at last %+v, next at %s, want %s: %s", got, next, tc.phase, tc.message)
			}
		})
	}
}

func TestPullsOfImagesThatAreThere(t *testing.T) {
	rules, s, begin := DefaultRules(), newStorage(), time.Unix(1000, 0)
	n := asked(t, `[{"tag":"1"}]`)
	n.Status, _ = s.answer(n, rules, begin)
	n.Status, _ = s.answer(n, rules, begin.Add(rules.Pull))
	again := asked(t, `[{"tag":"1","version":1,"imagePullPolicy":"IfNotPresent"}]`)
	again.Status = n.Status
	if again.Status, _ = s.answer(again, rules, begin.Add(time.Minute)); again.Status.Succeeded != 1 {
		t.Errorf("a second round has %+v, want success at once", again.Status)
	}
	always := asked(t, `[{"tag":"1","version":2,"imagePullPolicy":"Always"}]`)
	always.Status = again.Status
	if always.Status, _ = s.answer(always, rules, begin.Add(time.Minute)); always.Status.Pulling != 1 {
		t.Errorf("a round that always asks the registry has %+v, want a pull", always.Status)
	}
	if always.Status, _ = s.answer(nodeImage{Status: always.Status}, rules, begin.Add(time.Hour)); always.Status.ImageStatuses != nil || always.Status.Desired != 0 {
		t.Errorf("without tags there is %+v, want nothing", always.Status)
	}
}
