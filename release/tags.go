package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// modulePath is the module of this repository.
const modulePath = "github.com/openshift-agent/cluster-api-provider-openshift-agent"

// apiFolders are the modules of the API types. The last one requires the other.
var apiFolders = []string{"bootstrap/api", "controlplane/api"}

// publishing returns instructions for publishing the release. The go command finds a module in a folder by a
// tag that begins with the path of the folder.
func (r *release) publishing() (string, error) {
	tags := []string{r.version}
	for _, folder := range apiFolders {
		tags = append(tags, folder+"/"+r.version)
	}
	text := "Tags to push: " + strings.Join(tags, " ") + "\n"
	required, err := r.requiredAPI()
	if err != nil {
		return "", err
	}
	if required != r.version {
		text += fmt.Sprintf("Before you push, set the version of the other API module that %s requires to %s (now %s): see \"Release\" in "+
			"CONTRIBUTING.md.\n", apiFolders[1], r.version, required)
	}
	return text, nil
}

// requiredAPI returns the version of the first API module that the second one requires.
func (r *release) requiredAPI() (string, error) {
	file := filepath.Join(r.root, apiFolders[1], "go.mod")
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read the go.mod of the API types: %w", err)
	}
	parsed, err := modfile.Parse(file, content, nil)
	if err != nil {
		return "", fmt.Errorf("cannot read the go.mod of the API types: %w", err)
	}
	for _, required := range parsed.Require {
		if required.Mod.Path == modulePath+"/"+apiFolders[0] {
			return required.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", file, apiFolders[0])
}
