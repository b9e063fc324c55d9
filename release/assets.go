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

// writeAssets writes the files of the release to a new folder without subfolders, as a GitHub release has them.
// clusterctl finds the files of both providers in such a release.
func (r *release) writeAssets() error {
	if r.assets == "" {
		return nil
	}
	if entries, err := os.ReadDir(r.assets); len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("ASSETS must be a new or empty folder, unlike %s", r.assets), err)
	}
	files, err := readRelease(r.out)
	if err != nil {
		return err
	}
	if err := writeFiles(r.assets, assetsOf(files)); err != nil {
		return err
	}
	return writeChecksums(r.assets)
}

// readRelease returns the files of a release except the checksums, by path.
func readRelease(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == checksums {
			return err
		}
		files[name], err = fs.ReadFile(os.DirFS(dir), name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the release: %w", err)
	}
	return files, nil
}

// assetsOf returns the files by the last element of their path. The label of the provider precedes the name of a file
// that differs between the providers.
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
