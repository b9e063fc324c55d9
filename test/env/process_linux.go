package env

import "syscall"

// processAttributes put a child into a process group of its own, so that Ctrl-C in a terminal reaches only us, who shut
// the children down in order, and let the kernel end it when we are killed ourselves.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
