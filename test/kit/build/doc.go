// Package build makes the objects that tests are about, in words: what a test does not say has a harmless value.
//
//	build.Pod("web-a").Revision("web-old").Node("n1").Ready(build.Start()).Obj()
package build

import "time"

// Start returns the moment that tests count from.
func Start() time.Time {
	return time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
}

// After returns the moment so many seconds after Start; before it, for a negative number.
func After(seconds int) time.Time {
	return Start().Add(time.Duration(seconds) * time.Second)
}
