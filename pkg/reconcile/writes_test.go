package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWritesThatTheCacheDoesNotHave(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	writes := NewWrites(func() time.Time { return now })
	g.Expect(writes.Unseen("made", "")).To(BeFalse(), "nothing was written")

	writes.Wrote("made", "")
	writes.Wrote("changed", "7")
	g.Expect(writes.Unseen("made", "")).To(BeTrue())
	g.Expect(writes.Unseen("made", "8")).To(BeFalse(), "it is there")
	g.Expect(writes.Unseen("changed", "7")).To(BeTrue())
	g.Expect(writes.Unseen("changed", "9")).To(BeFalse())
	g.Expect(writes.Unseen("other", "")).To(BeFalse())

	now = now.Add(CacheLag)
	g.Expect(writes.Unseen("changed", "7")).To(BeFalse(), "the cache is taken as it is")
}

func TestKeysTellWritesApart(t *testing.T) {
	g := NewWithT(t)
	a := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
	b := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"}}
	g.Expect(Key("owner", a)).To(Equal(Key("owner", a.DeepCopy())))
	g.Expect(Key("owner", a)).NotTo(Equal(Key("owner", b)))
	g.Expect(Key("owner", a)).NotTo(Equal(Key("nudge", a)))
}
