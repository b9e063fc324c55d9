package process

import "syscall"

// Attributes put a child into a process group of its own, so that Ctrl-C in a terminal reaches only us, who shut
// the children down in order, and let the kernel end it when we are killed ourselves.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
