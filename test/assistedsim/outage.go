package assistedsim

import (
	"context"
	"errors"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// errAway is what hosts hear of a service that does not run.
var errAway = errors.New("assisted-service does not answer")

// Leave stops the service, until [Simulator.Return]: it looks at no object, serves no download and answers no host.
// What it knows is kept, as its database is. Its admission webhooks run on, which are a Deployment of their own.
func (s *Simulator) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back == nil {
		s.back = make(chan struct{})
		s.notify()
	}
}

// Return starts it again: it looks at all that changed meanwhile.
func (s *Simulator) Return() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back != nil {
		close(s.back)
		s.back = nil
	}
}

// Missed is how often somebody wanted something of the service while it was not here: a request, or an object to look at.
func (s *Simulator) Missed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missed
}

func (s *Simulator) miss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missed++
}

// away is closed when the service is back; nil: it is here.
func (s *Simulator) away() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.back
}

// present lets a controller wait until the service is here.
func (s *Simulator) present(act reconcile.Func) reconcile.Func {
	return func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if back := s.away(); back != nil {
			s.miss()
			select {
			case <-back:
			case <-ctx.Done():
				return reconcile.Result{}, ctx.Err()
			}
		}
		return act(ctx, request)
	}
}

// answering refuses requests while the service is not here.
func (s *Simulator) answering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.away() != nil {
			s.miss()
			http.Error(w, errAway.Error(), http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}
