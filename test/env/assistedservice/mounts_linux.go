package assistedservice

import (
	"os"
	"syscall"
)

// ownMounts lets a process mount what it wants, for itself and its children only. It needs no rights where the kernel
// gives everyone user namespaces; in its own, the process is root.
func ownMounts(attributes *syscall.SysProcAttr) {
	attributes.Cloneflags |= syscall.CLONE_NEWNS
	if os.Getuid() == 0 {
		return
	}
	attributes.Cloneflags |= syscall.CLONE_NEWUSER
	attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
}
