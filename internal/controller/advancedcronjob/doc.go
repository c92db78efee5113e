// Package advancedcronjob creates a job at each time of a schedule.
//
// Its promise: a slot gets one job or, if it was missed and a later one was missed as well, none; it never gets two, whatever becomes of
// the job, of the cache and of the controller. However many slots were missed, one job is created for the last of them.
//
// The name of a job follows from its slot, so the API server refuses a second one. The status names the slot and its job before the job is
// created, so a name without a UID in status.active means that the job still has to be created. One case can't be told apart: a job that
// was created and deleted between the end of one controller and the first pass of the next is created once more.
//
//	slot ── status: slot, name ── (Replace: the earlier jobs go) ── job is made ── status: UID ── runs ── finished ── history
package advancedcronjob
