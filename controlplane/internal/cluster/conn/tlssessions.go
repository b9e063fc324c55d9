package conn

import (
	"crypto/tls"
	"sync"
)

// tlsSessions is a cache of TLS sessions for connections that follow one another. A resumed session saves
// most of the work of a connection, at both ends. The sessions are dropped afterwards because they hold
// certificates.
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

// drop removes all sessions.
func (s *tlsSessions) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = nil
}
