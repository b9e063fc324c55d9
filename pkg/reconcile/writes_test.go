package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
)

func TestVersionsBeforeTheStoredOneAreStale(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakeClock(time.Now())
	written := NewWriteCache[string, string](clock)
	written.RecordStored("object", "value", "12", "8")
	for version, expected := range map[string]time.Duration{
		"8": CacheLag, "9": CacheLag, "11": CacheLag, "12": 0, "13": 0, "100": 0, "": 0,
	} {
		_, left := written.Pending("object", version)
		g.Expect(left).To(Equal(expected), "version %q", version)
	}
	clock.Step(CacheLag)
	_, left := written.Pending("object", "11")
	g.Expect(left).To(BeZero(), "the cache is trusted as it is")
	written.RecordStored("object", "value", "", "8")
	_, left = written.Pending("object", "9")
	g.Expect(left).To(BeZero(), "the stored version is not known")
}

func TestWriteIsPendingWhileTheCacheIsStale(t *testing.T) {
	const object = "object"
	for situation, tc := range map[string]struct {
		outdated []string
		version  string
		passed   time.Duration
		after    bool
		left     time.Duration
	}{
		"nothing was written": {version: "7"},
		"the cache is stale":  {outdated: []string{"7"}, version: "7", after: true, left: CacheLag},
		"the cache is stale for a while": {
			outdated: []string{"7"}, version: "7", passed: CacheLag / 4, after: true, left: CacheLag * 3 / 4,
		},
		"the cache is stale for CacheLag: not pending":   {outdated: []string{"7"}, version: "7", passed: CacheLag, after: true},
		"the cache is stale for an hour: not pending":    {outdated: []string{"7"}, version: "7", passed: time.Hour, after: true},
		"the cache has one of several outdated versions": {outdated: []string{"7", "8"}, version: "8", after: true, left: CacheLag},
		"the cache has the oldest outdated version":      {outdated: []string{"7", "8"}, version: "7", after: true, left: CacheLag},
		"the cache has another version":                  {outdated: []string{"7", "8"}, version: "9"},
		"the cache lacks a new object":                   {outdated: []string{""}, after: true, left: CacheLag},
		"the cache has a new object":                     {outdated: []string{""}, version: "9"},
		"the object was written, then deleted":           {outdated: []string{"7"}},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			clock := testingclock.NewFakeClock(time.Now())
			written := NewWriteCache[string, string](clock)
			if tc.outdated != nil {
				written.Record(object, "former", "0")
				written.Record(object, "last", tc.outdated...)
			}
			clock.Step(tc.passed)
			value, newer := written.NewerThan(object, tc.version)
			g.Expect(newer).To(Equal(tc.after))
			pending, left := written.Pending(object, tc.version)
			g.Expect(left).To(Equal(tc.left))
			if tc.after {
				g.Expect(value).To(Equal("last"), "the reader continues with the written value")
			}
			if tc.left > 0 {
				g.Expect(pending).To(Equal("last"))
			}
			_, newer = written.NewerThan("other", tc.version)
			g.Expect(newer).To(BeFalse(), "another object")
		})
	}
}

func TestLastWriteIsKeptUntilForgotten(t *testing.T) {
	g := NewWithT(t)
	written := NewWriteCache[string, string](testingclock.NewFakeClock(time.Now()))
	_, known := written.Last("object")
	g.Expect(known).To(BeFalse())
	written.Record("object", "first", "")
	written.Record("object", "second", "7")
	last, known := written.Last("object")
	g.Expect(known).To(BeTrue())
	g.Expect(last).To(Equal("second"))

	written.Forget("object")
	_, known = written.Last("object")
	g.Expect(known).To(BeFalse())
	_, newer := written.NewerThan("object", "7")
	g.Expect(newer).To(BeFalse())
	_, left := written.Pending("object", "7")
	g.Expect(left).To(BeZero())
}

func TestRecentWriteIsPendingForCacheLag(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakeClock(time.Now())
	writes := NewRecentWrites(clock)
	g.Expect(writes.Pending("created", "")).To(BeZero(), "nothing was written")

	writes.Record("created", "")
	writes.Record("changed", "7")
	g.Expect(writes.Pending("created", "")).To(Equal(CacheLag))
	g.Expect(writes.Pending("created", "8")).To(BeZero(), "the cache shows the write")
	g.Expect(writes.Pending("changed", "7")).To(Equal(CacheLag))
	g.Expect(writes.Pending("changed", "9")).To(BeZero())
	g.Expect(writes.Pending("other", "")).To(BeZero())

	clock.Step(CacheLag)
	g.Expect(writes.Pending("changed", "7")).To(BeZero(), "the cache is trusted after CacheLag")
}

func TestKeysDiffer(t *testing.T) {
	g := NewWithT(t)
	a := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
	b := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"}}
	g.Expect(Key("owner", a)).To(Equal(Key("owner", a.DeepCopy())))
	g.Expect(Key("owner", a)).NotTo(Equal(Key("owner", b)))
	g.Expect(Key("owner", a)).NotTo(Equal(Key("touch", a)))
}
