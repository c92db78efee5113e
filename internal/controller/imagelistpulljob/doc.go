// Package imagelistpulljob has nodes pull several images, by one ImagePullJob for each.
//
// Its promise: there is one job for each image of the list, made from what the list says now; a job whose image was taken from the list, or
// that was made from something else, goes; and a job that has completed is not made again.
package imagelistpulljob
