package components

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRecentEnough(t *testing.T) {
	for name, test := range map[string]struct {
		output, pinned, problem string
	}{
		"the same":          {output: "Kubernetes v1.36.3\n", pinned: "v1.36.3"},
		"of the same minor": {output: "Kubernetes v1.36.0\n", pinned: "v1.36.3"},
		"a newer minor":     {output: "Kubernetes v1.37.1\n", pinned: "v1.36.3"},
		"an older minor": {
			output: "Kubernetes v1.35.9\n", pinned: "v1.36.3",
			problem: "its version is 1.35.9, but must be at least 1.36.0",
		},
		"another major version": {output: "Kubernetes v2.40.0\n", pinned: "v1.36.3", problem: "its version is 2.40.0"},
		"etcd": {
			output: "etcd Version: 3.6.6\nGit SHA: 1234567\nGo Version: go1.24.11\nGo OS/Arch: linux/amd64\n",
			pinned: "v3.6.5",
		},
		"an old etcd": {
			output: "etcd Version: 3.5.24\nGit SHA: 1234567\nGo Version: go1.24.11\n", pinned: "v3.6.5",
			problem: "its version is 3.5.24, but must be at least 3.6.0",
		},
		"nothing": {output: "usage\n", pinned: "v3.6.5", problem: "has no version"},
	} {
		t.Run(name, func(t *testing.T) {
			err := recentEnough(test.output, test.pinned)
			if test.problem == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
			} else {
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.problem)))
			}
		})
	}
}

// assets creates a folder with a kube-apiserver and an etcd with these versions.
func assets(t *testing.T, apiServer, etcd string) string {
	t.Helper()
	folder := t.TempDir()
	for name, says := range map[string]string{
		"kube-apiserver": "Kubernetes v" + apiServer, "etcd": "etcd Version: " + etcd,
		"kube-controllers": "Kubernetes v" + apiServer,
	} {
		NewWithT(t).Expect(os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\necho '"+says+"'\n"), 0o755)).To(Succeed())
	}
	return folder
}

func TestPrebuiltPrograms(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	b, err := NewBuilder(".", &out)
	g.Expect(err).NotTo(HaveOccurred())
	offered := func(c Component) string { return b.offered(t.Context(), c) }

	t.Setenv(Assets, "")
	g.Expect(offered(APIServer)).To(BeEmpty())
	g.Expect(out.String()).To(BeEmpty())

	folder := assets(t, "1.36.1", "3.5.24")
	t.Setenv(Assets, folder)
	program, err := b.Program(t.Context(), APIServer)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(program).To(Equal(filepath.Join(folder, "kube-apiserver")))
	g.Expect(offered(APIServer)).To(Equal(program))
	g.Expect(offered(Etcd)).To(BeEmpty(), "the etcd is too old")
	g.Expect(offered(Controllers)).To(BeEmpty(), "components whose version must match others are built")
	g.Expect(out.String()).To(Equal("kube-apiserver is taken from KUBEBUILDER_ASSETS: "+program+"\n"+
		"KUBEBUILDER_ASSETS has no suitable etcd, it is built: its version is 3.5.24, but must be at least 3.6.0\n"),
		"each message is printed once")
	missing, err := b.missing(t.Context(), []Component{APIServer})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(missing).To(BeEmpty())

	t.Setenv(Assets, t.TempDir())
	g.Expect(offered(Etcd)).To(BeEmpty(), "the folder has no etcd")
}
