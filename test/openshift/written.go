package openshift

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
)

// Written is the last content that an operator wrote, by object. An operator writes content once, so that it does not
// revert the changes of other clients.
type Written map[string]string

// Once writes content to an object, unless it is the last content of the object.
func (w Written) Once(object string, content any, write func() error) error {
	record := w.Changed(object, content)
	if record == nil {
		return nil
	}
	if err := write(); err != nil {
		return fmt.Errorf("cannot write %s: %w", object, err)
	}
	record()
	return nil
}

// Changed returns nil if content is the last content of an object, otherwise the function to call after the write.
func (w Written) Changed(object string, content any) (record func()) {
	encoded, err := json.Marshal(content)
	if err != nil {
		panic(fmt.Sprintf("cannot encode %s: %v", object, err)) // contents have only types that can be encoded
	}
	if w[object] == string(encoded) {
		return nil
	}
	return func() { w[object] = string(encoded) }
}

// Problems logs each problem of an operator once.
type Problems struct {
	Log  logr.Logger
	last string
}

// Report logs an error, unless the last one was the same or ctx ended.
func (p *Problems) Report(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != p.last && ctx.Err() == nil {
		p.Log.Info("blocked", "reason", text)
	}
	p.last = text
}

// Pause waits for a duration, or until ctx ends. It reports whether the whole duration passed.
func Pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
