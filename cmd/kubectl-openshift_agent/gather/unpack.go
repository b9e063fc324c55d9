package gather

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
)

const (
	// maxNested is the number of levels of tar and gzip that are read. The logs of a cluster contain a tar.gz for each host.
	maxNested = 6
	// maxEntries is the number of files in the logs of the hosts, of all sources.
	maxEntries = 5000
	// maxUnpacked is the length of the logs of the hosts, uncompressed.
	maxUnpacked = 1 << 30
	// sniffed is the length of the start of a file by which its format is recognized.
	sniffed = 512
)

// credentialFile matches names of files that consist of credentials.
var credentialFile = regexp.MustCompile(`(?i)(kubeconfig|pull-?secret|\.ign$|ignition|\.key$|\.pem$|\.p12$|id_(rsa|ed25519|ecdsa)|` +
	`shadow$|\.docker|dockercfg|config\.json$|auth\.json$|password|token|secrets?[/._-]|/kcm|htpasswd)`)

// unpacker adds the text files of an archive with logs, also from the archives in the archive.
type unpacker struct {
	*gatherer

	title  string
	folder []string
}

// budget is the number of files and bytes of the host logs of all sources.
type budget struct {
	entries int
	bytes   int64
}

// exhausted returns why no more is unpacked, or nil.
func (u *unpacker) exhausted(ctx context.Context) error {
	if u.used.entries > u.unpacked.entries || u.used.bytes > u.unpacked.bytes {
		return fmt.Errorf("the logs have more than %d files or %d MiB", u.unpacked.entries, u.unpacked.bytes>>20)
	}
	return context.Cause(ctx)
}

// counted counts what is read of an uncompressed stream.
type counted struct {
	io.Reader
	ctx context.Context //nolint:containedctx // an io.Reader has no other way to end
	u   *unpacker
}

// Read implements io.Reader.
func (c counted) Read(block []byte) (int, error) {
	n, err := c.Reader.Read(block)
	c.u.used.bytes += int64(n)
	if exhausted := c.u.exhausted(c.ctx); exhausted != nil {
		return n, exhausted
	}
	return n, err
}

// unpack adds a file, or the files of an archive. A file that cannot be read is recorded.
func (u *unpacker) unpack(ctx context.Context, name []string, content io.Reader, depth int) error {
	buffered := bufio.NewReaderSize(counted{content, ctx, u}, 64<<10)
	start, _ := buffered.Peek(sniffed)
	at := u.title + " " + strings.Join(name, "/")
	switch {
	case depth > maxNested:
		u.gap(at, errors.New("too many archives in archives"))
	case len(start) > 2 && start[0] == 0x1f && start[1] == 0x8b:
		uncompressed, err := gzip.NewReader(buffered)
		if err != nil {
			u.gap(at, err)
			return nil
		}
		return u.unpack(ctx, withoutExtension(name, ".gz"), uncompressed, depth+1)
	case len(start) == sniffed && string(start[257:262]) == "ustar":
		return u.unpackTar(ctx, name, tar.NewReader(buffered), depth)
	default:
		return u.addText(name, buffered, at)
	}
	return nil
}

func (u *unpacker) unpackTar(ctx context.Context, name []string, content *tar.Reader, depth int) error {
	folder := withoutExtension(name, ".tar")
	for {
		header, err := content.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			u.gap("rest of "+u.title+" "+strings.Join(name, "/"), err)
			return nil
		case header.Typeflag != tar.TypeReg:
			continue
		}
		u.used.entries++
		if err := u.exhausted(ctx); err != nil {
			u.gap("rest of "+u.title, err)
			return nil
		}
		file := append(append([]string{}, folder...), elementsOf(header.Name)...)
		if err := u.unpack(ctx, file, content, depth+1); err != nil {
			return err
		}
	}
}

// addText adds the end of a text file without credentials.
func (u *unpacker) addText(name []string, content io.Reader, at string) error {
	if credentialFile.MatchString("/" + strings.Join(name, "/")) {
		u.gap(at, errors.New("may consist of credentials"))
		return nil
	}
	text, note, err := tail(content, u.LogBytes)
	if err != nil {
		u.gap("rest of "+at, err)
	}
	if !isText(text) {
		u.gap(at, errors.New("no text"))
		return nil
	}
	if len(name) == 0 {
		name = []string{"log.txt"}
	}
	_, err = u.addFile(at, note+u.redactor.Text(text), append(append([]string{}, u.folder...), name...)...)
	return err
}

// isText reports whether a file is text. A character may be cut off.
func isText(text string) bool {
	start := text[:min(len(text), 64<<10)]
	return !strings.ContainsRune(start, 0) && len(strings.ToValidUTF8(start, "")) >= len(start)*9/10
}

// elementsOf returns the elements of a name in an archive that lead to no other folder.
func elementsOf(name string) []string {
	var elements []string
	for _, element := range strings.Split(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/") {
		if element != "" && len(elements) < 16 {
			elements = append(elements, element)
		}
	}
	return elements
}

// withoutExtension returns the name of the folder for the content of an archive.
func withoutExtension(name []string, extension string) []string {
	if len(name) == 0 {
		return name
	}
	last := len(name) - 1
	base := strings.TrimSuffix(strings.Replace(name[last], ".tgz", ".tar", 1), extension)
	return append(append([]string{}, name[:last]...), base)
}
