package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// packedFile is a file of an archive.
type packedFile struct {
	content []byte
	mode    int64
}

// pack returns a compressed archive of files, by path. Equal files give equal bytes.
func pack(files map[string]packedFile) ([]byte, error) {
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := files[name]
		err := archive.WriteHeader(&tar.Header{Name: name, Mode: file.mode, Size: int64(len(file.content)), Format: tar.FormatUSTAR})
		if err == nil {
			_, err = archive.Write(file.content)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot pack %s: %w", name, err)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		return nil, fmt.Errorf("cannot write an archive: %w", err)
	}
	return packed.Bytes(), nil
}
