package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/release/chart"
)

func TestAssetsOfGitHubRelease(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	out, assets := filepath.Join(dir, "out"), filepath.Join(dir, "assets")
	args := []string{"-root", root, "-out", out, "-version", "v0.1.0", "-registry", "registry.example.com/team", "-assets", assets}
	g.Expect(run(t.Context(), args, t.Output())).To(Succeed())
	released, flat := contents(t, out), contents(t, assets)

	// clusterctl reads these names in a GitHub release.
	for _, name := range []string{"bootstrap-components.yaml", "control-plane-components.yaml", "metadata.yaml", "cluster-template.yaml"} {
		g.Expect(flat).To(HaveKey(name))
	}
	for _, p := range providers {
		for _, name := range []string{sbomFile, operatorFile, hubFile} {
			g.Expect(flat[p.label+"-"+name]).To(Equal(released[p.label+"/v0.1.0/"+name]), name)
			g.Expect(flat).NotTo(HaveKey(name), "differs between the providers")
		}
	}
	all := map[string]bool{}
	for _, content := range flat {
		all[content] = true
	}
	for name, content := range released {
		g.Expect(name == checksums || all[content]).To(BeTrue(), "no file is missing: %s", name)
	}
	for name, content := range flat {
		g.Expect(name).NotTo(ContainSubstring("/"))
		if name != checksums {
			g.Expect(flat[checksums]).To(ContainSubstring(fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(content)), name)))
		}
	}
	g.Expect(strings.Count(flat[checksums], "\n")).To(Equal(len(flat) - 1))

	checkDownloads(t, flat)

	g.Expect(run(t.Context(), args, t.Output())).To(MatchError(ContainSubstring("ASSETS must be a new or empty folder")))
}

// A script plays Helm: it records its arguments and reports a digest, as Helm does on its standard error.
func TestChartIsPushedByMake(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	digest := "sha256:" + strings.Repeat("0123", 16)
	script := filepath.Join(dir, "helm")
	g.Expect(os.WriteFile(script, []byte("#!/bin/sh\necho \"$@\" > \"$(dirname \"$0\")/calls\"\necho Pushed: \"$3\" >&2\n"+
		"[ -z \"$DIGEST\" ] || echo \"Digest: $DIGEST\" >&2\n"), 0o700)).To(Succeed())
	push := func(digest string) error {
		return makeIn(t, dir, []string{"DIGEST=" + digest}, "push-chart", "HELM="+script, "VERSION=v0.1.0", "REGISTRY=registry.example.com/team")
	}
	g.Expect(push(digest)).To(Succeed())
	packed, err := filepath.EvalSymlinks(dir)
	g.Expect(err).NotTo(HaveOccurred())
	files := contents(t, dir)
	g.Expect(files["calls"]).To(Equal("push " + packed + "/out/" + chart.File("v0.1.0") + " oci://registry.example.com/team/charts\n"))
	g.Expect(files["bin/chart.txt"]).To(Equal("registry.example.com/team/charts/cluster-api-provider-openshift-agent@" + digest + "\n"))

	g.Expect(push("")).NotTo(Succeed(), "a push without a digest fails")
}
