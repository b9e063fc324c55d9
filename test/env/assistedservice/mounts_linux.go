package assistedservice

import (
	"os"
	"syscall"
)

// ownMounts gives a process private mounts for itself and its children. It needs no rights if the kernel
// permits user namespaces to all users; in its own namespace the process is root.
func ownMounts(attributes *syscall.SysProcAttr) {
	attributes.Cloneflags |= syscall.CLONE_NEWNS
	if os.Getuid() == 0 {
		return
	}
	attributes.Cloneflags |= syscall.CLONE_NEWUSER
	attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
}
