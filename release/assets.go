package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// newAssets returns an error if the folder for the assets has files.
func (r *release) newAssets() error {
	if r.assets == "" {
		return nil
	}
	if entries, err := os.ReadDir(r.assets); len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("ASSETS must be a new or empty folder, unlike %s", r.assets), err)
	}
	return nil
}

// assetsOf returns the files by the last element of their path, as a GitHub release has them: without folders. clusterctl
// finds the files of both providers in such a release. The label of the provider precedes the name of a file that differs
// between the providers.
func assetsOf(files map[string][]byte) map[string][]byte {
	assets := map[string][]byte{}
	for name, content := range files {
		base := path.Base(name)
		if differs(files, base, content) {
			label, _, _ := strings.Cut(name, "/")
			base = label + "-" + base
		}
		assets[base] = content
	}
	return assets
}

// differs returns whether a file has this name and other content.
func differs(files map[string][]byte, base string, content []byte) bool {
	for name, other := range files {
		if path.Base(name) == base && !bytes.Equal(other, content) {
			return true
		}
	}
	return false
}
