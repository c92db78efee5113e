// Package advancedcronjob makes a job at each time of a schedule.
//
// Its promise: for a slot there is one job, or none when the slot was missed and a later one is made up for, never two, whatever becomes of the
// job, of the cache and of the controller; and however long nothing could be made, one job makes up for it.
//
// What makes that hold: the name of a job follows from its slot, so that the API server refuses a second one; and the slot is written down, with
// the name of the job that is to come, before the job is made. Of a name without a UID in status.active it is thus known that its job
// still has to be made. (One thing can't be known: that a job was made and deleted again between the death of one controller and the first look of
// the next. It is made once more.)
//
//	slot ── status: slot, name ── (Replace: the earlier jobs go) ── job is made ── status: UID ── runs ── finished ── history
package advancedcronjob
