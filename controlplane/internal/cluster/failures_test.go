package cluster

import (
	"crypto/x509"
	"os"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
)

func TestResponseEndsSilence(t *testing.T) {
	g := NewWithT(t)
	conn := newConnection(clusterKey, clock.RealClock{}, nil, func() {}, func() {})
	conn.failed(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	g.Expect(conn.observe().Failure.Silent).To(BeTrue())
	conn.failed(x509.UnknownAuthorityError{})
	g.Expect(conn.observe().Failure.Silent).To(BeFalse(), "although the first cause of a kind is reported for a while")
}
