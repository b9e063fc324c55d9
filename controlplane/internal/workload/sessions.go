package workload

import (
	"crypto/tls"
	"sync"
)

// sessions spare the connections that are made one soon after the other the exchange of certificates, which is most of the work of a connection, at both ends. They
// are dropped then: they hold certificates.
type sessions struct{ kept sync.Map }

// Get implements tls.ClientSessionCache.
func (s *sessions) Get(server string) (*tls.ClientSessionState, bool) {
	found, _ := s.kept.Load(server)
	session, ok := found.(*tls.ClientSessionState)
	return session, ok && session != nil
}

// Put implements tls.ClientSessionCache.
func (s *sessions) Put(server string, session *tls.ClientSessionState) { s.kept.Store(server, session) }

// drop forgets them.
func (s *sessions) drop() { s.kept.Clear() }
