package main

import (
	"context"
	"sync"
)

// meeting lets several clusters go on together.
type meeting struct {
	mu       sync.Mutex
	expected int
	arrived  int
	ready    int
	all      chan struct{} // closed when everybody has arrived
	done     chan struct{} // closed when everybody had its turn
}

func newMeeting(expected int) *meeting {
	return &meeting{expected: expected, all: make(chan struct{}), done: make(chan struct{})}
}

// turn waits until everybody has come, runs act, one at a time, and returns when everybody's has run.
func (m *meeting) turn(ctx context.Context, act func() error) error {
	m.mu.Lock()
	if m.arrived++; m.arrived == m.expected {
		close(m.all)
	}
	m.mu.Unlock()
	if err := await(ctx, m.all); err != nil {
		return err
	}
	if err := m.alone(act); err != nil {
		return err
	}
	return await(ctx, m.done)
}

func (m *meeting) alone(act func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := act(); err != nil {
		return err
	}
	if m.ready++; m.ready == m.expected {
		close(m.done)
	}
	return nil
}

func await(ctx context.Context, happened <-chan struct{}) error {
	select {
	case <-happened:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
