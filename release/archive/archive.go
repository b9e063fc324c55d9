// Package archive packs the files of a release. Equal files give equal bytes.
package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// File is a file of an archive.
type File struct {
	Content []byte
	Mode    int64
}

// Pack returns a tar archive of files, by path, that is compressed with gzip.
func Pack(files map[string]File) ([]byte, error) {
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	packer := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := files[name]
		err := packer.WriteHeader(&tar.Header{Name: name, Mode: file.Mode, Size: int64(len(file.Content)), Format: tar.FormatUSTAR})
		if err == nil {
			_, err = packer.Write(file.Content)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot pack %s: %w", name, err)
		}
	}
	if err := errors.Join(packer.Close(), compressed.Close()); err != nil {
		return nil, fmt.Errorf("cannot write an archive: %w", err)
	}
	return packed.Bytes(), nil
}
