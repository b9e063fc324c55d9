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

// apiFolders hold the modules of the API types, the one that requires the other last.
var apiFolders = []string{"bootstrap/api", "controlplane/api"}

// publishing tells how what was written is published: the go command finds a module in a folder by a tag that begins
// with the folder's path.
func (r *release) publishing() (string, error) {
	tags := []string{r.version}
	for _, folder := range apiFolders {
		tags = append(tags, folder+"/"+r.version)
	}
	text := "tags to push with it: " + strings.Join(tags, " ") + "\n"
	required, err := r.requiredAPI()
	if err != nil {
		return "", err
	}
	if required != r.version {
		text += fmt.Sprintf("before that, %s has to require the other API module at %s, not %s: see \"Release\" in CONTRIBUTING.md\n", apiFolders[1], r.version, required)
	}
	return text, nil
}

// requiredAPI is the version of the one API module that users of the other get.
func (r *release) requiredAPI() (string, error) {
	file := filepath.Join(r.root, apiFolders[1], "go.mod")
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read what the API types require: %w", err)
	}
	parsed, err := modfile.Parse(file, content, nil)
	if err != nil {
		return "", fmt.Errorf("cannot read what the API types require: %w", err)
	}
	for _, required := range parsed.Require {
		if required.Mod.Path == modulePath+"/"+apiFolders[0] {
			return required.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", file, apiFolders[0])
}
