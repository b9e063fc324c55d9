package cluster

import (
	"crypto/x509"
	"os"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestResponseEndsSilence(t *testing.T) {
	g := NewWithT(t)
	conn := newConnection(clusterKey, time.Now, nil, func() {}, func() {})
	conn.failed(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	g.Expect(conn.observe().Failure.Silent).To(BeTrue())
	conn.failed(x509.UnknownAuthorityError{})
	g.Expect(conn.observe().Failure.Silent).To(BeFalse(), "although the first cause of a kind is reported for a while")
}
