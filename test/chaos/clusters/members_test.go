package clusters

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-69ecc383/kruise/internal/clusters"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

// TestMembersThatGoAndComeBack: one of two members is restored from an older copy of its etcd, stopped, started, and replaced by another of
// the same name, while nothing happens to the other.
func TestMembersThatGoAndComeBack(t *testing.T) {
	f := newFleet(t, "member-1", "member-2")
	one, two := f.register("member-1"), f.register("member-2")
	f.Want("owner", one, two)
	ready := func(v clusters.View) bool { return v.Ready() }
	first, other := f.until(one, "connected", ready), f.until(two, "connected", ready)
	if first.ID != f.id(f.members["member-1"]) || first.ID == other.ID {
		t.Errorf("the members are %s and %s", first.ID, other.ID)
	}

	f.deploy(first.Client(), "before")
	f.shows(one, "before")
	saved := filepath.Join(f.dir, "saved")
	f.Must(f.members["member-1"].SaveEtcd(f.Ctx, saved))
	for _, name := range []string{"a", "b", "c"} {
		f.deploy(f.members["member-1"].Client, name)
	}
	f.shows(one, "a", "b", "before", "c")
	f.Must(f.members["member-1"].RestoreEtcd(f.Ctx, saved))
	f.shows(one, "before")
	f.deploy(f.members["member-1"].Client, "after")
	f.shows(one, "after", "before")

	f.Must(f.members["member-1"].Stop(f.Ctx))
	away := f.until(one, "unreachable", func(v clusters.View) bool { return v.Reason == connection.Unreachable })
	if away.Ready() || away.ID != first.ID || time.Since(away.LastContact) > time.Minute {
		t.Errorf("while it is away, it is %+v", away.State)
	}
	f.Must(f.members["member-1"].Start(f.Ctx))
	f.shows(one, "after", "before")

	replaced, err := f.members["member-1"].Replace(f.Ctx)
	f.Must(err)
	f.members["member-1"] = replaced
	f.register("member-1")
	another := f.until(one, "another", func(v clusters.View) bool { return v.Ready() && v.ID != first.ID })
	if another.ID != f.id(replaced) {
		t.Errorf("another cluster of the name is %s, want %s", another.ID, f.id(replaced))
	}
	f.shows(one)
	if now := f.Look(two); !now.Ready() || now.Session != other.Session {
		t.Errorf("meanwhile the other member became %s, in session %d after %d", now.Reason, now.Session, other.Session)
	}
}
