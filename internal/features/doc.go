// Package features holds the feature gates: their names, which are those that clusters already have in their --feature-gates, their
// defaults, and how one forces another. Gates are parsed once, when the manager starts, and then only asked; nothing below
// internal/manager knows this package, controllers and webhooks get plain booleans.
package features
