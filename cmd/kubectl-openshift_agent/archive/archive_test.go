package archive

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestFullArchiveHasSpaceForItsLastFiles(t *testing.T) {
	g, file := NewWithT(t), filepath.Join(t.TempDir(), "a.tar.gz")
	a, err := New(file, "root", time.Unix(0, 0), 100)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(a.Discard)
	_, err = a.Add(strings.Repeat("x", 100), "fits")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = a.Add("x", "does-not-fit")
	g.Expect(err).To(MatchError(ErrFull))
	_, err = a.AddLast(strings.Repeat("x", 1000), "last")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = a.AddLast(strings.Repeat("x", maxLast), "too-large")
	g.Expect(err).To(MatchError(ErrFull))
	g.Expect(a.Commit()).To(Succeed())
	g.Expect(file).To(BeARegularFile())
}

func TestNumberOfFilesIsBounded(t *testing.T) {
	g := NewWithT(t)
	a, err := New(filepath.Join(t.TempDir(), "a.tar.gz"), "root", time.Unix(0, 0), MaxBytes)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(a.Discard)
	for i := range maxFiles - lastFiles {
		_, err = a.Add("", "folder", strconv.Itoa(i))
		g.Expect(err).NotTo(HaveOccurred())
	}
	_, err = a.Add("", "file")
	g.Expect(err).To(MatchError(ErrFull))
	for i := range lastFiles {
		_, err = a.AddLast("", "last", strconv.Itoa(i))
		g.Expect(err).NotTo(HaveOccurred())
	}
	_, err = a.AddLast("", "last")
	g.Expect(err).To(MatchError(ErrFull))
}
