package reconcile

import (
	"time"

	"k8s.io/utils/clock"
)

// An object whose input keeps changing is recreated at most once in minRecreationInterval. The interval doubles with
// each further recreation up to maxRecreationInterval.
const (
	minRecreationInterval = 5 * time.Minute
	maxRecreationInterval = time.Hour
)

// NewRecreations returns the Backoff of objects that are deleted and created again because of a ConfigMap. Two clients
// that keep overwriting the ConfigMap would otherwise recreate the objects with each write. Its keys are those of [Key],
// because the object that replaces another has the same name and another UID.
func NewRecreations(c clock.PassiveClock) *Backoff {
	return NewBackoff(c, minRecreationInterval, maxRecreationInterval)
}
