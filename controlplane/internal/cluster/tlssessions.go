package cluster

import (
	"crypto/tls"
	"sync"
)

// tlsSessions spare the connections that are made one soon after the other the exchange of certificates, which is most of the work of a connection, at both ends. They
// are dropped then: they hold certificates.
type tlsSessions struct {
	mu   sync.Mutex
	kept map[string]*tls.ClientSessionState
}

// Get implements tls.ClientSessionCache.
func (s *tlsSessions) Get(server string) (*tls.ClientSessionState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.kept[server]
	return session, session != nil
}

// Put implements tls.ClientSessionCache.
func (s *tlsSessions) Put(server string, session *tls.ClientSessionState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]*tls.ClientSessionState{}
	}
	s.kept[server] = session
}

// drop forgets them.
func (s *tlsSessions) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = nil
}
