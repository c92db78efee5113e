// Package apply carries plans out. It is the only package that writes to the API server.
//
// Every write is a patch of what a plan changes, on the condition that the object is still the one that was judged; a conflict is never retried
// with the old decision. After its writes an owner is not looked at again before the cache has caught up with them (Consistency), and after a
// write with an unknown outcome it is looked at live, so that neither a stale cache nor a lost answer makes anything happen twice.
package apply
