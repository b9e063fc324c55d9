package reconcile

import (
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An object whose input keeps changing is recreated at most once in minRecreationInterval. The interval doubles with
// each further recreation up to maxRecreationInterval.
const (
	minRecreationInterval = 5 * time.Minute
	maxRecreationInterval = time.Hour
)

// Recreations limits how often objects are deleted and created again because of a ConfigMap. Two clients that keep
// overwriting the ConfigMap would otherwise recreate the objects with each write.
type Recreations struct {
	backoff *flowcontrol.Backoff
}

// NewRecreations returns a Recreations without objects. Its memory ends with the process.
func NewRecreations(c clock.Clock) *Recreations {
	backoff := flowcontrol.NewBackOff(minRecreationInterval, maxRecreationInterval)
	backoff.Clock = c
	return &Recreations{backoff: backoff}
}

// Delay returns the delay after which an object may be recreated; zero if it may be recreated now. The first recreation
// has no delay.
func (r *Recreations) Delay(obj client.Object) time.Duration {
	if id := Key("", obj); r.backoff.IsInBackOffSinceUpdate(id, r.backoff.Clock.Now()) {
		return r.backoff.Get(id)
	}
	return 0
}

// Record counts a recreation of an object. The object that replaces it has the same name and another UID.
func (r *Recreations) Record(obj client.Object) {
	r.backoff.Next(Key("", obj), r.backoff.Clock.Now())
	r.backoff.GC()
}
