// Package ext stands for the package of the same name in Traefik's repository, which is in none of its published modules: a place where
// other products add fields to the configuration. There are none.
package ext

// HTTP is embedded in the configuration of HTTP.
type HTTP struct{}

// Router is embedded in the configuration of a router.
type Router struct{}
