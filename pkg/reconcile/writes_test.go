package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatWasWrittenAndTheCacheDoesNotHave(t *testing.T) {
	const object = "object"
	for situation, tc := range map[string]struct {
		outdated []string
		version  string
		passed   time.Duration
		after    bool
		left     time.Duration
	}{
		"nothing was written":                           {version: "7"},
		"the cache has the version from before":         {outdated: []string{"7"}, version: "7", after: true, left: CacheLag},
		"it has it for a while":                         {outdated: []string{"7"}, version: "7", passed: CacheLag / 4, after: true, left: CacheLag * 3 / 4},
		"it has it for so long that nothing is to come": {outdated: []string{"7"}, version: "7", passed: CacheLag, after: true},
		"it has it for ever":                            {outdated: []string{"7"}, version: "7", passed: time.Hour, after: true},
		"it has one of several versions from before":    {outdated: []string{"7", "8"}, version: "8", after: true, left: CacheLag},
		"it has the oldest of them":                     {outdated: []string{"7", "8"}, version: "7", after: true, left: CacheLag},
		"it has another version":                        {outdated: []string{"7", "8"}, version: "9"},
		"the object is new, and not there yet":          {outdated: []string{""}, after: true, left: CacheLag},
		"the object is new, and there":                  {outdated: []string{""}, version: "9"},
		"the object was there, and is gone":             {outdated: []string{"7"}},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			now := time.Now()
			written := NewWritten[string](func() time.Time { return now })
			if tc.outdated != nil {
				written.Wrote(object, "former", "0")
				written.Wrote(object, "last", tc.outdated...)
			}
			now = now.Add(tc.passed)
			what, newer := written.After(object, tc.version)
			g.Expect(newer).To(Equal(tc.after))
			unseen, left := written.Unseen(object, tc.version)
			g.Expect(left).To(Equal(tc.left))
			if tc.after {
				g.Expect(what).To(Equal("last"), "a reader goes on with it")
			}
			if tc.left > 0 {
				g.Expect(unseen).To(Equal("last"))
			}
			_, newer = written.After("other", tc.version)
			g.Expect(newer).To(BeFalse(), "another object")
		})
	}
}

func TestWhatWasWrittenLast(t *testing.T) {
	g := NewWithT(t)
	written := NewWritten[string](time.Now)
	_, known := written.Last("object")
	g.Expect(known).To(BeFalse())
	written.Wrote("object", "first", "")
	written.Wrote("object", "second", "7")
	last, known := written.Last("object")
	g.Expect(known).To(BeTrue())
	g.Expect(last).To(Equal("second"))

	written.Forget("object")
	_, known = written.Last("object")
	g.Expect(known).To(BeFalse())
	_, newer := written.After("object", "7")
	g.Expect(newer).To(BeFalse())
	_, left := written.Unseen("object", "7")
	g.Expect(left).To(BeZero())
}

func TestWritesThatTheCacheDoesNotHave(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	writes := NewWrites(func() time.Time { return now })
	g.Expect(writes.Unseen("made", "")).To(BeZero(), "nothing was written")

	writes.Wrote("made", "")
	writes.Wrote("changed", "7")
	g.Expect(writes.Unseen("made", "")).To(Equal(CacheLag))
	g.Expect(writes.Unseen("made", "8")).To(BeZero(), "it is there")
	g.Expect(writes.Unseen("changed", "7")).To(Equal(CacheLag))
	g.Expect(writes.Unseen("changed", "9")).To(BeZero())
	g.Expect(writes.Unseen("other", "")).To(BeZero())

	now = now.Add(CacheLag)
	g.Expect(writes.Unseen("changed", "7")).To(BeZero(), "the cache is taken as it is")
}

func TestKeysTellWritesApart(t *testing.T) {
	g := NewWithT(t)
	a := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
	b := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"}}
	g.Expect(Key("owner", a)).To(Equal(Key("owner", a.DeepCopy())))
	g.Expect(Key("owner", a)).NotTo(Equal(Key("owner", b)))
	g.Expect(Key("owner", a)).NotTo(Equal(Key("nudge", a)))
}
