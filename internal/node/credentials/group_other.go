//go:build !unix

package credentials

import "os/exec"

// killGroup does nothing where processes have no groups: a plugin is killed alone.
func killGroup(*exec.Cmd) {}
