// Package admission puts the webhooks for our own kinds together. A request for a kind in any served version comes to the same handler,
// which tells the versions apart by what it is given; so one webhook with both versions in its rules is enough.
//
// A handler that panics answers with an error instead: the webhook server lets no panic through.
package admission
