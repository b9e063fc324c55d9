//go:build !linux

package process

import "syscall"

// Attributes put a child into its own process group, so that Ctrl-C in a terminal reaches only this process. This
// process stops its children in order. Without the parent death signal of Linux, the children continue to run if this
// process is killed.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
