package bootmode

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/cert"
)

const (
	// authoritiesLimit is far above the 220 KiB of the authorities of an operating system.
	authoritiesLimit = 1 << 20
	// authorityFilesLimit is the maximum number of files in a folder.
	authorityFilesLimit = 100
)

// Authorities are the certificate authorities that verify assisted-service for all hosts of a manager, in addition to
// those of an OpenshiftAssistedConfig. They are in a file, or in the files of a folder such as a mounted ConfigMap.
type Authorities struct {
	path string
	log  logr.Logger

	// mu guards the fields below.
	mu sync.Mutex
	// valid are the authorities as last read successfully.
	valid bundle
	// problem is the last problem that was logged.
	problem string
}

// bundle is the content of a file or folder with authorities.
type bundle struct {
	// certificates are in PEM, without private keys.
	certificates []byte
	// empty are the files without content. cert-manager leaves ca.crt empty for an issuer of a public authority (ACME).
	empty []string
}

// ReadAuthorities reads a file or folder. It returns an error if a file cannot be read, or has text without a PEM block.
// A damaged block is an error, too, and a path without a certificate and without an empty file. An empty file has no
// authority, and is logged. Without a path ReadAuthorities returns nil, which has no authorities.
func ReadAuthorities(path string, log logr.Logger) (*Authorities, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // nil has no authorities
	}
	found, err := readAuthorities(path)
	if err != nil {
		return nil, err
	}
	a := &Authorities{path: path, log: log}
	a.use(found)
	return a, nil
}

// use replaces the valid authorities, and logs the empty files if they changed.
func (a *Authorities) use(found bundle) {
	if len(found.empty) > 0 && !slices.Equal(found.empty, a.valid.empty) {
		a.log.Info("Files for authorities of assisted-service are empty. They add no authority", "files", found.empty)
	}
	a.valid, a.problem = found, ""
}

// PEM returns the certificates as the files have them now. If the files became unreadable or invalid, it logs the
// problem once, and returns the last valid certificates.
func (a *Authorities) PEM() []byte {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	found, err := readAuthorities(a.path)
	switch {
	case err == nil:
		if !bytes.Equal(found.certificates, a.valid.certificates) || a.problem != "" {
			a.log.Info("Read the changed authorities of assisted-service", "path", a.path)
		}
		a.use(found)
	case err.Error() != a.problem:
		a.problem = err.Error()
		a.log.Error(err, "The authorities of assisted-service are unusable: the former ones stay trusted", "path", a.path)
	}
	return a.valid.certificates
}

// readAuthorities returns the authorities of the file, or of the files of the folder.
func readAuthorities(path string) (bundle, error) {
	files, err := filesAt(path)
	if err != nil {
		return bundle{}, err
	}
	var all bundle
	left := authoritiesLimit
	for _, file := range files {
		content, err := readLimited(file, left)
		if err != nil {
			return bundle{}, err
		}
		left -= len(content)
		if len(bytes.TrimSpace(content)) == 0 {
			all.empty = append(all.empty, file)
			continue
		}
		found, err := certificatesIn(file, content)
		if err != nil {
			return bundle{}, err
		}
		all.certificates = append(all.certificates, found...)
	}
	if len(all.certificates) == 0 && len(all.empty) == 0 {
		return bundle{}, fmt.Errorf("%s has no PEM certificate", path)
	}
	return all, nil
}

// pemBegin is the first line of a PEM block.
var pemBegin = regexp.MustCompile("(?m)^-----BEGIN ")

// certificatesIn returns the certificates of a file in PEM, without private keys and text. A file without a PEM block,
// or with a damaged one, is an error. Go skips damaged blocks, and their authority would be lost without a message.
func certificatesIn(file string, content []byte) ([]byte, error) {
	var found []byte
	blocks := 0
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		blocks++
		if block.Type != cert.CertificateBlockType {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("PEM block %d of %s is not a certificate: %w", blocks, file, err)
		}
		found = append(found, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	switch begun := len(pemBegin.FindAllIndex(content, -1)); {
	case begun == 0:
		return nil, fmt.Errorf("%s has no PEM certificate", file)
	case begun > blocks:
		return nil, fmt.Errorf("%s has a damaged PEM block: %d of %d blocks are complete", file, blocks, begun)
	}
	return found, nil
}

// filesAt returns a file, or the files of a folder. The kubelet mounts a ConfigMap as a folder of links, next to
// folders whose names begin with two dots.
func filesAt(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authorities: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authorities: %w", err)
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && !strings.HasPrefix(entry.Name(), "..") {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) > authorityFilesLimit {
		return nil, fmt.Errorf("%s has %d files. Use %d files at most", path, len(files), authorityFilesLimit)
	}
	return files, nil
}

// errTooLarge reports that the authorities are too large.
var errTooLarge = errors.New("the authorities are larger than 1 MiB")

// readLimited reads a regular file. Any other file could block the manager.
func readLimited(file string, limit int) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the authorities: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	opened, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authorities: %w", err)
	}
	defer func() { _ = opened.Close() }()
	content, err := io.ReadAll(io.LimitReader(opened, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the authorities: %w", err)
	case len(content) > limit:
		return nil, fmt.Errorf("%s: %w", file, errTooLarge)
	}
	return content, nil
}
