package process

import "syscall"

// Attributes put a child into its own process group, so that Ctrl-C in a terminal reaches only this process. This
// process stops its children in order. If it is killed, the kernel ends the child.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
