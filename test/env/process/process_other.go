//go:build !linux

package process

import "syscall"

// Attributes put a child into a process group of its own, so that Ctrl-C in a terminal reaches only us, who shut
// the children down in order. Without Linux's parent death signal the children outlive us if we are killed.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
