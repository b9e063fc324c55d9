package hosts

import (
	"context"
	"io"
	"net"
	"testing"

	. "github.com/onsi/gomega"
)

// TestConnectionsOfAKubelet end with the power of the host, and one that ended before is forgotten: somebody connects each few seconds.
func TestConnectionsOfAKubelet(t *testing.T) {
	g := NewWithT(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	life, end := context.WithCancel(t.Context())
	connect := func() (client, server net.Conn) {
		client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = client.Close() })
		server, err = mortal{Listener: listener, life: life}.Accept()
		g.Expect(err).NotTo(HaveOccurred())
		return client, server
	}

	_, first := connect()
	g.Expect(first.Close()).To(Succeed())
	g.Expect(first.(mortalConn).forget()).To(BeFalse(), "it is forgotten already")

	client, _ := connect()
	end()
	_, err = client.Read(make([]byte, 1))
	g.Expect(err).To(MatchError(io.EOF))
}
