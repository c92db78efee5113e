// Package validating answers the validating webhooks of our own kinds. The rules are written for the hub version; an object of an older one
// is converted first, and what is wrong is reported under the names that its user wrote.
//
// Rules that can be said in the schema are there, too, as CEL: they hold without the webhook. What is left needs code: other objects, the
// cluster's own idea of a valid Pod template, and what a change can do in place.
package validating
