package hosts

import (
	"context"
	"io"
	"net"
	"testing"

	. "github.com/onsi/gomega"
)

// The connections of a kubelet end with the power of the host. A connection that ended before is released:
// clients connect every few seconds.
func TestConnectionsOfKubeletEndWithThePower(t *testing.T) {
	g := NewWithT(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	life, end := context.WithCancel(t.Context())
	connect := func() (client, server net.Conn) {
		client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = client.Close() })
		server, err = boundListener{Listener: listener, life: life}.Accept()
		g.Expect(err).NotTo(HaveOccurred())
		return client, server
	}

	_, first := connect()
	g.Expect(first.Close()).To(Succeed())
	g.Expect(first.(boundConn).forget()).To(BeFalse(), "it is released already")

	client, _ := connect()
	end()
	_, err = client.Read(make([]byte, 1))
	g.Expect(err).To(MatchError(io.EOF))
}
