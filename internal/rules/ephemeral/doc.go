// Package ephemeral is about ephemeral containers that a job adds to Pods: which Pods can take them, which job they are of, and what has become of them.
//
// What a job has added is known from the Pod alone, by a variable in the containers that nobody can change afterwards. So it is never added twice, whatever
// a controller has forgotten.
package ephemeral
