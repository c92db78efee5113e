package budget

// BesideSeconds is a minReadySeconds that no Pod ever reaches: 68 years. A release of blueGreen style sets it, so that Pods of both
// revisions stay until it ends.
//
// Wire: it is stored in users' workloads.
const BesideSeconds = 2147483646

// beside returns what may be done while Pods of both revisions are to stay: there are as many old Pods as replicas, and as many new ones
// beside them as maxSurge says. Pods go only where the workload was scaled in. With the partition at 100%, or where there is no older
// revision, nothing is known of who is to stay: then none goes, and those come that replicas lack in all.
//
// R 4, S 50%: 4 old Pods and 2 new ones; scaled to 8, 8 and 4; scaled to 2 after that, 2 and 2: what is led to new Pods already stays with
// them.
func beside(l Limits, c Counts, same bool) Moves {
	old, new := c.Old.staying(), c.New.staying()
	m := Moves{Surge: max(old+new-l.Replicas, 0), DeleteReady: c.specified()}
	if same || l.Expected() == 0 {
		m.Create = max(l.Replicas-old-new, 0)
		m.CreateNow = m.Create
		return m
	}
	m.CreateOld = max(l.Replicas-old, 0)
	m.Create = m.CreateOld + max(min(l.MaxSurge, l.Expected())-new, 0)
	m.CreateNow = m.Create
	m.DeleteOld = max(old-c.Old.Specified-l.Replicas, 0)
	m.Delete = m.DeleteOld + max(new-c.New.Specified-l.Replicas, 0)
	m.DeleteReady += m.Delete
	return m
}
