//go:build !linux

package assistedservice

import "syscall"

// ownMounts does nothing: private mounts are Linux's, and what needs them fails.
func ownMounts(*syscall.SysProcAttr) {}
