package connection

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func start() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

func after(seconds int) time.Time { return start().Add(time.Duration(seconds) * time.Second) }

func silence() *Problem { return &Problem{Unreachable, "no answer"} }

func TestWhatBecomesOfAConnection(t *testing.T) {
	times := Usual()
	joined := Begin().JoinedAt(start(), "id", times)
	tests := map[string]struct {
		got  State
		want Reason
		next time.Time
	}{
		"nothing was tried yet":                {Begin(), Connecting, time.Time{}},
		"a join succeeds":                      {joined, Connected, after(10)},
		"a join fails":                         {Begin().JoinFailed(start(), silence(), times), Unreachable, after(5)},
		"a second join fails":                  {Begin().JoinFailed(start(), silence(), times).JoinFailed(after(5), silence(), times), Unreachable, after(15)},
		"one probe fails":                      {joined.Probed(after(10), silence(), times), Connected, after(20)},
		"two probes fail":                      {joined.Probed(after(10), silence(), times).Probed(after(20), silence(), times), Connected, after(30)},
		"three probes fail":                    {joined.Probed(after(10), silence(), times).Probed(after(20), silence(), times).Probed(after(30), silence(), times), Unreachable, after(40)},
		"the account lost its rights":          {joined.Probed(after(10), &Problem{Forbidden, "no"}, times), Forbidden, after(20)},
		"the cluster object is gone":           {joined.Refused(&Problem{NotFound, "gone"}), NotFound, time.Time{}},
		"the manager of clusters says ill":     {joined.Overlaid(&Problem{Unhealthy, "ill"}), Unhealthy, after(10)},
		"it is ill, and does not answer":       {Begin().JoinFailed(start(), silence(), times).Overlaid(&Problem{Unhealthy, "ill"}), Unreachable, after(5)},
		"the manager of clusters says healthy": {joined.Overlaid(nil), Connected, after(10)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.got.Reason != tc.want || !tc.got.Next.Equal(tc.next) {
				t.Errorf("got %s, next at %s, want %s, next at %s", tc.got.Reason, tc.got.Next, tc.want, tc.next)
			}
		})
	}
}

func TestOneAnswerBringsAClusterBack(t *testing.T) {
	times := Usual()
	lost := Begin().JoinedAt(start(), "id", times)
	for i := range 5 {
		lost = lost.Probed(after(10*i), silence(), times)
	}
	back := lost.Probed(after(60), nil, times)
	want := State{
		Reason: Connected, Message: "the cluster answers", ID: "id", Joined: true, LastContact: after(60), Next: after(70),
	}
	if diff := cmp.Diff(want, back); diff != "" {
		t.Errorf("state differs (-want +got):\n%s", diff)
	}
	if !lost.LastContact.Equal(start()) || !lost.Joined {
		t.Errorf("while it is away, its last contact is %s and its caches are kept: %t", lost.LastContact, lost.Joined)
	}
}

// TestPausesGrowAndStayBounded: 5, 10, 20, 40, 80, 160, 320, 320 seconds.
func TestPausesGrowAndStayBounded(t *testing.T) {
	times := Usual()
	s, now := Begin(), start()
	var pauses []time.Duration
	for range 8 {
		s = s.JoinFailed(now, silence(), times)
		pauses = append(pauses, s.Next.Sub(now))
		now = s.Next
	}
	want := []time.Duration{5, 10, 20, 40, 80, 160, 320, 320}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Errorf("pauses differ (-want +got):\n%s", diff)
	}
}

// TestAnUnreachableClusterIsToldOfInTheSameWords: attempts fail in many.
func TestAnUnreachableClusterIsToldOfInTheSameWords(t *testing.T) {
	times := Usual()
	s := Begin().JoinFailed(start(), &Problem{Unreachable, "port 1"}, times).JoinFailed(start(), &Problem{Unreachable, "port 2"}, times)
	if s.Message != "port 1" {
		t.Errorf("message is %q", s.Message)
	}
	if s = s.JoinFailed(start(), &Problem{Forbidden, "no right"}, times); s.Message != "no right" {
		t.Errorf("message of another reason is %q", s.Message)
	}
}

// TestAClusterIsUnreachableOnlyAfterEnoughSilence: whatever happens, Unreachable of a joined cluster means that the last probes failed, and
// Connected that there were fewer; the last contact is that of the last answer.
func TestAClusterIsUnreachableOnlyAfterEnoughSilence(t *testing.T) {
	times := Usual()
	rapid.Check(t, func(t *rapid.T) {
		s := Begin().JoinedAt(start(), "id", times)
		now, contact, silent := start(), start(), 0
		for range rapid.IntRange(1, 30).Draw(t, "probes") {
			now = now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
			answered := rapid.Bool().Draw(t, "answered")
			if answered {
				s, contact, silent = s.Probed(now, nil, times), now, 0
			} else {
				s, silent = s.Probed(now, silence(), times), silent+1
			}
			if got, want := s.Reason == Unreachable, silent >= times.Misses; got != want {
				t.Fatalf("after %d silent probes the cluster is %s", silent, s.Reason)
			}
			if !s.LastContact.Equal(contact) || s.Silent() != (silent > 0) {
				t.Fatalf("last contact %s, want %s; silent %t after %d probes", s.LastContact, contact, s.Silent(), silent)
			}
		}
	})
}
