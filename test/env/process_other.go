//go:build !linux

package env

import "syscall"

// processAttributes put a child into a process group of its own, so that Ctrl-C in a terminal reaches only us, who shut
// the children down in order. Without Linux's parent death signal the children outlive us if we are killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// ownMounts does nothing: private mounts are Linux's, and what needs them fails.
func ownMounts(*syscall.SysProcAttr) {}
