//go:build !linux

package assistedservice

import "syscall"

// ownMounts does nothing: only Linux has private mounts, and operations that need them fail.
func ownMounts(*syscall.SysProcAttr) {}
