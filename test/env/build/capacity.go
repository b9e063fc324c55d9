package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

const mebibyte = 1 << 20

// What the demo needs, as measured with Go 1.26 on linux/amd64. README.md states the sums.
const (
	// buildCache is the size of the compiled packages of all programs, in the build cache of Go.
	buildCache = 1050 * mebibyte
	// modules is the size of the modules of all programs, and of their archives, in the module cache of Go.
	modules = 1850 * mebibyte
	// builtPrograms is the size of the built programs.
	builtPrograms = 480 * mebibyte
	// linking is the size of the largest programs while they are linked, in the folder for temporary files.
	linking = 300 * mebibyte
	// running is the size of the logs and the data of one run.
	running = 300 * mebibyte
	// memory is the need of a run, in which most memory is that of two API servers. The build, which comes first, needs less:
	// two compilers or linkers run at a time.
	memory = 3072 * mebibyte
)

// space is the free disk space that files need, in bytes.
type space struct {
	files, folder string
	bytes         uint64
}

// machine reads the free capacity of the machine, in bytes. An error means that the capacity is unknown.
type machine struct {
	// volume returns an identifier of the file system of a folder, and its free space.
	volume func(folder string) (id any, free uint64, err error)
	// memory returns how much memory programs can allocate without swapping.
	memory func() (uint64, error)
}

// warn writes a warning for each shortage of disk space or memory that would interrupt the demo. The demo continues: the
// numbers are estimates for this machine.
func warn(ctx context.Context, out io.Writer, builder *components.Builder) error {
	built, err := builder.HasBuilt(ctx, components.Demo()...)
	if err != nil {
		return err
	}
	folders, err := goFolders(ctx)
	if err != nil {
		return err
	}
	for _, warning := range shortages(machine{volume: volume, memory: available}, needed(builder.Root(), folders, built)) {
		fmt.Fprintln(out, "Warning: "+warning)
	}
	return nil
}

// needed returns the disk space of a run. A run after the first needs no space for the components.
func needed(root string, folders goEnvironment, built bool) []space {
	run := space{"logs and data of the run", filepath.Join(root, "_artifacts"), running}
	if built {
		return []space{run}
	}
	return []space{
		{"build cache of Go", folders.cache, buildCache},
		{"module cache of Go", folders.modules, modules},
		{"programs", filepath.Join(root, ".tools"), builtPrograms},
		{"temporary files", folders.temporary, linking},
		run,
	}
}

// shortages returns a message for each file system, and for the memory, of which the machine has less than the demo needs.
func shortages(m machine, spaces []space) []string {
	var volumes []any
	var messages []string
	free, byVolume := map[any]uint64{}, map[any][]space{}
	for _, s := range spaces {
		id, bytes, err := m.volume(s.folder)
		if err != nil {
			continue
		}
		if !slices.Contains(volumes, id) {
			volumes = append(volumes, id)
		}
		free[id] = bytes
		byVolume[id] = append(byVolume[id], s)
	}
	for _, id := range volumes {
		if message := shortageOfDisk(byVolume[id], free[id]); message != "" {
			messages = append(messages, message)
		}
	}
	if bytes, err := m.memory(); err == nil && bytes < memory {
		messages = append(messages, fmt.Sprintf("The demo needs %s of memory, and %s are available. Stop other programs: "+
			"the kernel may kill the build or a program of the demo.", size(memory), size(bytes)))
	}
	return messages
}

// shortageOfDisk returns the message for the files of one file system, or "" if it has enough free space.
func shortageOfDisk(spaces []space, free uint64) string {
	sum, files := uint64(0), make([]string, 0, len(spaces))
	for _, s := range spaces {
		sum += s.bytes
		files = append(files, fmt.Sprintf("%s in %s: %s", s.files, s.folder, size(s.bytes)))
	}
	if free >= sum {
		return ""
	}
	return fmt.Sprintf("The demo needs %s of free disk space, and %s are free (%s). Free disk space, or set GOCACHE, "+
		"GOMODCACHE or TMPDIR to a folder of another disk.", size(sum), size(free), strings.Join(files, ", "))
}

// size returns a number of bytes in GiB.
func size(bytes uint64) string {
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1024*mebibyte))
}

// goEnvironment has the folders of the go command.
type goEnvironment struct{ cache, modules, temporary string }

func goFolders(ctx context.Context) (goEnvironment, error) {
	output, err := exec.CommandContext(ctx, "go", "env", "GOCACHE", "GOMODCACHE", "GOTMPDIR").Output()
	if err != nil {
		return goEnvironment{}, fmt.Errorf("cannot read the environment of the go command: %w", err)
	}
	lines := strings.Split(string(output), "\n")
	return goEnvironment{cache: lines[0], modules: lines[1], temporary: cmp.Or(lines[2], os.TempDir())}, nil
}

// volume returns the device of a folder, or of its first parent that exists, and the free space of its file system.
func volume(folder string) (id any, free uint64, err error) {
	info, err := os.Stat(folder)
	for os.IsNotExist(err) && folder != filepath.Dir(folder) {
		folder = filepath.Dir(folder)
		info, err = os.Stat(folder)
	}
	if err != nil {
		return nil, 0, err
	}
	var files syscall.Statfs_t
	if err := syscall.Statfs(folder, &files); err != nil {
		return nil, 0, err
	}
	return info.Sys().(*syscall.Stat_t).Dev, files.Bavail * uint64(files.Bsize), nil
}

// available returns the available memory of Linux. Other systems have no such file.
func available() (uint64, error) {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return parseMemory(file)
}

// parseMemory returns MemAvailable of /proc/meminfo.
func parseMemory(meminfo io.Reader) (uint64, error) {
	lines := bufio.NewScanner(meminfo)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "MemAvailable:" {
			kibibytes, err := strconv.ParseUint(fields[1], 10, 64)
			return kibibytes * 1024, err
		}
	}
	return 0, cmp.Or(lines.Err(), errors.New("the file has no MemAvailable"))
}
