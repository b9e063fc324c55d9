// Package archive writes a tar.gz that exists only when it is complete. Names of its files may be foreign.
package archive

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxBytes is the size of the files of an archive, uncompressed and without the last files.
	MaxBytes = 464 << 20
	// maxLast is the size of the last files, for which space remains in a full archive, lastFiles their number.
	maxLast   = 48 << 20
	lastFiles = 2
	// maxFiles is the number of files of an archive.
	maxFiles = 20_000
	// maxName is the length of one element of the name of a file.
	maxName = 120
)

// ErrFull is the error of a file for which the archive has no space.
var ErrFull = fmt.Errorf("the archive has reached its limit of %d MiB or %d files", MaxBytes>>20, maxFiles)

// Archive is a tar.gz that exists under its name only when it is complete.
type Archive struct {
	target, root string
	time         time.Time
	file         *os.File
	gzip         *gzip.Writer
	tar          *tar.Writer
	maxBytes     int64
	size         int64
	used         map[string]bool
}

// New creates an archive with all files below the folder root. Only the user can read it. The time is that of all files,
// maxBytes the size of all files without the last ones.
func New(target, root string, now time.Time, maxBytes int64) (*Archive, error) {
	if _, err := os.Lstat(target); err == nil {
		return nil, fmt.Errorf("file %s exists. Name another file with --output", target)
	}
	file, err := os.CreateTemp(filepath.Dir(target), ".gather-*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("cannot create the archive: %w", err)
	}
	compressed := gzip.NewWriter(file)
	return &Archive{
		target: target, root: safe(root), time: now, maxBytes: maxBytes,
		file: file, gzip: compressed, tar: tar.NewWriter(compressed), used: map[string]bool{},
	}, nil
}

// Add adds a file, and returns its name below the root. The elements of the name may be foreign.
func (a *Archive) Add(content string, elements ...string) (string, error) {
	return a.add(a.maxBytes, maxFiles-lastFiles, content, elements)
}

// AddLast adds a file that explains the others. A full archive has space for two of them.
func (a *Archive) AddLast(content string, elements ...string) (string, error) {
	return a.add(a.maxBytes+maxLast, maxFiles, content, elements)
}

func (a *Archive) add(maxBytes int64, maxFiles int, content string, elements []string) (string, error) {
	if a.size+int64(len(content)) > maxBytes || len(a.used) >= maxFiles {
		return "", ErrFull
	}
	name := a.unique(elements)
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: a.root + "/" + name, Size: int64(len(content)), Mode: 0o600, ModTime: a.time, Format: tar.FormatPAX,
	}
	if err := a.tar.WriteHeader(header); err != nil {
		return "", fmt.Errorf("cannot write the archive: %w", err)
	}
	if _, err := a.tar.Write([]byte(content)); err != nil {
		return "", fmt.Errorf("cannot write the archive: %w", err)
	}
	a.size += int64(len(content))
	return name, nil
}

// unique returns a safe name that no other file has, also where the names do not distinguish upper case.
func (a *Archive) unique(elements []string) string {
	parts := make([]string, 0, len(elements))
	for _, element := range elements {
		parts = append(parts, safe(element))
	}
	name := path.Join(parts...)
	extension := path.Ext(name)
	for n := 2; a.used[strings.ToLower(name)]; n++ {
		name = strings.TrimSuffix(path.Join(parts...), extension) + "-" + strconv.Itoa(n) + extension
	}
	a.used[strings.ToLower(name)] = true
	return name
}

// safe returns an element of a name of a file that every file system accepts and that leads to no other folder.
func safe(element string) string {
	element = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, element)
	if len(element) > maxName {
		extension := path.Ext(element)
		extension = extension[:min(len(extension), 8)]
		element = element[:maxName-len(extension)] + extension
	}
	if element == "" || strings.ContainsAny(element[:1], ".-") {
		element = "_" + strings.TrimLeft(element, ".-")
	}
	return strings.TrimRight(element, ".") // as Windows requires
}

// Commit completes the archive and gives it its name.
func (a *Archive) Commit() error {
	err := errors.Join(a.tar.Close(), a.gzip.Close(), a.file.Sync(), a.file.Close())
	if err == nil {
		err = os.Link(a.file.Name(), a.target) // fails if the file exists, as no rename does
		if err != nil && !errors.Is(err, os.ErrExist) {
			err = os.Rename(a.file.Name(), a.target) // the file system has no links
		}
	}
	if err != nil {
		return fmt.Errorf("cannot write the archive: %w", err)
	}
	return nil
}

// Discard removes the temporary file. It does nothing to a complete archive.
func (a *Archive) Discard() {
	_ = a.file.Close()
	_ = os.Remove(a.file.Name())
}
