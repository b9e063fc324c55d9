package reconcile

import (
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// An object whose input keeps changing is recreated at most once in minRecreationInterval. The interval doubles with
// each further recreation up to maxRecreationInterval.
const (
	minRecreationInterval = 5 * time.Minute
	maxRecreationInterval = time.Hour
)

// maxRecreations bounds the remembered recreations. An evicted object is recreated without delay.
const maxRecreations = 8192

// Recreations limits how often objects are deleted and created again because of a ConfigMap. Two clients that keep
// overwriting the ConfigMap would otherwise recreate the objects with each write.
type Recreations struct {
	clock clock.PassiveClock
	last  *lru.Cache[string, recreation]
}

// recreation is the last recreation of an object, and the interval that follows it.
type recreation struct {
	at       time.Time
	interval time.Duration
}

// NewRecreations returns a Recreations without objects. Its memory ends with the process.
func NewRecreations(c clock.PassiveClock) *Recreations {
	return &Recreations{clock: c, last: lru.New[string, recreation](maxRecreations)}
}

// Delay returns the delay after which an object may be recreated; zero if it may be recreated now. The first recreation
// has no delay.
func (r *Recreations) Delay(obj client.Object) time.Duration {
	last, _ := r.last.Get(Key("", obj))
	return max(0, last.interval-r.clock.Now().Sub(last.at))
}

// Record counts a recreation of an object. The object that replaces it has the same name and another UID. After two
// longest intervals without recreation, the next recreation counts as the first one.
func (r *Recreations) Record(obj client.Object) {
	key, interval := Key("", obj), minRecreationInterval
	if last, ok := r.last.Get(key); ok && r.clock.Now().Sub(last.at) <= 2*maxRecreationInterval {
		interval = min(2*last.interval, maxRecreationInterval)
	}
	r.last.Add(key, recreation{at: r.clock.Now(), interval: interval})
}
