package kube

import (
	"context"
	"sync"
)

// Steps are steps of which each has to succeed once, such as the index and the watch of a kind. The kind may be installed
// after the start of the manager. An index of a cache cannot be added again.
type Steps struct {
	mu   sync.Mutex
	left []func(context.Context) error
}

// NewSteps returns the steps, in the order in which they run.
func NewSteps(steps ...func(context.Context) error) *Steps { return &Steps{left: steps} }

// Run runs the steps that have not succeeded yet, until one fails.
func (s *Steps) Run(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.left) > 0 {
		if err := s.left[0](ctx); err != nil {
			return err
		}
		s.left = s.left[1:]
	}
	return nil
}

// Done reports whether all steps have succeeded.
func (s *Steps) Done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.left) == 0
}
