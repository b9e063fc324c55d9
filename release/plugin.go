package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/release/archive"
)

const (
	// pluginProgram is the program of the kubectl plugin, pluginCompletion the program that kubectl runs for its completion.
	pluginProgram, pluginCompletion = "kubectl-openshift_agent", "kubectl_complete-openshift_agent"
	// krewFile is the manifest with which krew installs the plugin.
	krewFile = "openshift-agent.krew.yaml"
	// downloads is the address of the files of all releases.
	downloads = "https://" + modulePath + "/releases/download/"
)

// completion is the script of pluginCompletion.
const completion = "#!/bin/sh\nexec kubectl openshift-agent __complete \"$@\"\n"

// pluginDescription describes the plugin in krew, with each of its commands.
const pluginDescription = `Shows the clusters of the OpenShift agent providers of Cluster API:

- status shows clusters as trees, and why names the first cause of a problem with the documented action.
- wait waits for the end of an installation, an upgrade or a deletion.
- hosts shows which BareMetalHosts fit the Machines.
- versions shows the Kubernetes version of an OpenShift release.
- gather writes an archive without credentials for the analysis of a problem.

The plugin reads the management cluster with your rights, and changes nothing. Only versions --pull-secret reads
the content of a Secret, the one that you name.
`

// platform is an operating system with an architecture, by their names in Go and in krew.
type platform struct{ os, arch string }

// pluginPlatforms are the platforms of the kubectl plugin.
var pluginPlatforms = []platform{
	{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// program returns the name of the program of the plugin.
func (p platform) program() string {
	if p.os == "windows" {
		return pluginProgram + ".exe"
	}
	return pluginProgram
}

// archive returns the name of the archive with the plugin.
func (p platform) archive(version string) string {
	return strings.Join([]string{pluginProgram, version, p.os, p.arch}, "_") + ".tar.gz"
}

// pluginFiles builds the kubectl plugin for platforms. It returns an archive of each, and the manifest for krew.
func (r *release) pluginFiles(ctx context.Context, platforms []platform) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, p := range platforms {
		program, err := r.buildPlugin(ctx, p)
		if err == nil {
			files[p.archive(r.version)], err = r.packPlugin(p, program)
		}
		if err != nil {
			return nil, err
		}
	}
	var err error
	files[krewFile], err = krewManifest(r.version, platforms, files)
	return files, err
}

// packPlugin returns an archive with the program of the plugin, the program for its completion and the license.
func (r *release) packPlugin(p platform, program []byte) ([]byte, error) {
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the license: %w", err)
	}
	return archive.Pack(map[string]archive.File{
		p.program():      {Content: program, Mode: 0o755},
		pluginCompletion: {Content: []byte(completion), Mode: 0o755},
		"LICENSE":        {Content: license, Mode: 0o644},
	})
}

// buildPlugin returns the program of the plugin. Equal sources give equal bytes in every folder.
func (r *release) buildPlugin(ctx context.Context, p platform) ([]byte, error) {
	folder, err := os.MkdirTemp("", "plugin-")
	if err != nil {
		return nil, fmt.Errorf("cannot build the kubectl plugin: %w", err)
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a leftover does no harm
	program := filepath.Join(folder, p.program())
	_, err = goCommand(ctx, filepath.Join(r.root, "cmd", pluginProgram), []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch},
		"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version="+r.version, "-o", program, ".")
	if err != nil {
		return nil, err
	}
	return os.ReadFile(program)
}

// krewManifest returns the manifest of the plugin for krew. The archives are by name.
func krewManifest(version string, platforms []platform, archives map[string][]byte) ([]byte, error) {
	list := make([]any, 0, len(platforms))
	for _, p := range platforms {
		name := p.archive(version)
		list = append(list, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": p.os, "arch": p.arch}},
			"uri":      downloads + version + "/" + name,
			"sha256":   fmt.Sprintf("%x", sha256.Sum256(archives[name])),
			"bin":      p.program(),
		})
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]any{"name": "openshift-agent"},
		"spec": map[string]any{
			"version":          version,
			"homepage":         "https://" + modulePath,
			"shortDescription": "Show what OpenShift clusters wait for",
			"description":      pluginDescription,
			"platforms":        list,
		},
	})
}
