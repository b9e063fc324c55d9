package assistedsim

import (
	"context"
	"errors"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// errAway is the error that hosts get while the service is stopped.
var errAway = errors.New("assisted-service does not respond")

// Leave stops the service until [Simulator.Return]: it reconciles no object, and serves no download and no
// host. Its records persist, like the database of the service. Its admission webhooks keep running, because
// they are a separate Deployment.
func (s *Simulator) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back == nil {
		s.back = make(chan struct{})
		s.notify()
	}
}

// Return starts the service again, which then reconciles all objects that changed meanwhile.
func (s *Simulator) Return() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back != nil {
		close(s.back)
		s.back = nil
	}
}

// Missed returns the number of requests and reconciles that failed or waited while the service was stopped.
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

// returned returns a channel that is closed when the service returns, or nil while the service runs.
func (s *Simulator) returned() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.back
}

// present makes a controller wait while the service is stopped.
func (s *Simulator) present(act reconcile.Func) reconcile.Func {
	return func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if back := s.returned(); back != nil {
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

// answering rejects requests while the service is stopped.
func (s *Simulator) answering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.returned() != nil {
			s.miss()
			http.Error(w, errAway.Error(), http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}
