// Package defaulting answers the mutating webhooks of our own kinds: it fills in defaults. The answer holds the fields that were filled in
// and nothing else, so that what this build does not know stays as the user wrote it.
package defaulting
