//go:build !unix

package plugin

import "os/exec"

// together does nothing where processes have no groups: a program is ended alone.
func together(*exec.Cmd) {}
