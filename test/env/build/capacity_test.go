package main

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const gibibyte = 1024 * mebibyte

func TestShortages(t *testing.T) {
	folders := goEnvironment{cache: "/home/user/.cache/go-build", modules: "/home/user/go/pkg/mod", temporary: "/tmp"}
	unknown := errors.New("not supported")
	for name, c := range map[string]struct {
		built  bool
		free   map[string]uint64
		memory uint64
		errs   [2]error
		wanted []string
	}{
		"enough of everything": {free: map[string]uint64{"/home": 4 * gibibyte, "/tmp": gibibyte}, memory: 3 * gibibyte},
		"the caches, programs and logs do not fit on their disk": {
			free: map[string]uint64{"/home": 3 * gibibyte, "/tmp": gibibyte}, memory: 3 * gibibyte,
			wanted: []string{"The demo needs 3.6 GiB of free disk space, and 3.0 GiB are free (" +
				"build cache of Go in /home/user/.cache/go-build: 1.0 GiB, module cache of Go in /home/user/go/pkg/mod: 1.8 GiB, " +
				"programs in /home/user/demo/.tools: 0.5 GiB, logs and data of the run in /home/user/demo/_artifacts: 0.3 GiB). " +
				"Free disk space, or set GOCACHE, GOMODCACHE or TMPDIR to a folder of another disk."},
		},
		"a small disk for temporary files": {
			free: map[string]uint64{"/home": 4 * gibibyte, "/tmp": 100 * mebibyte}, memory: 3 * gibibyte,
			wanted: []string{"The demo needs 0.3 GiB of free disk space, and 0.1 GiB are free (temporary files in /tmp: 0.3 GiB). " +
				"Free disk space, or set GOCACHE, GOMODCACHE or TMPDIR to a folder of another disk."},
		},
		"the components are built": {built: true, free: map[string]uint64{"/home": gibibyte}, memory: 3 * gibibyte},
		"too little memory": {
			built: true, free: map[string]uint64{"/home": gibibyte}, memory: 1536 * mebibyte,
			wanted: []string{"The demo needs 3.0 GiB of memory, and 1.5 GiB are available. Stop other programs: " +
				"the kernel may kill the build or a program of the demo."},
		},
		"disk and memory are unknown": {errs: [2]error{unknown, unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine{
				volume: func(folder string) (any, uint64, error) {
					id := "/" + strings.Split(folder, "/")[1]
					return id, c.free[id], c.errs[0]
				},
				memory: func() (uint64, error) { return c.memory, c.errs[1] },
			}
			NewWithT(t).Expect(shortages(m, needed("/home/user/demo", folders, c.built))).To(Equal(c.wanted))
		})
	}
}

func TestParseMemory(t *testing.T) {
	g := NewWithT(t)
	g.Expect(parseMemory(strings.NewReader("MemTotal:       32768 kB\nMemAvailable:    2048 kB\n"))).To(BeEquivalentTo(2 * mebibyte))
	for _, text := range []string{"", "MemTotal: 32768 kB\n", "MemAvailable: many kB\n"} {
		_, err := parseMemory(strings.NewReader(text))
		g.Expect(err).To(HaveOccurred(), text)
	}
}
